//! All tests of the runtime as one program, to share build time and processors, except tests that restart themselves as
//! several processes.

mod adaptive;
mod aggregation;
mod assembled;
mod bisect;
mod compiled;
mod complex_multigrid;
mod conformance;
mod coupled;
mod cuda_kernels;
mod cuda_sources;
mod device_estimates;
mod device_groups;
mod device_solves;
mod device_sparse;
mod device_vectors;
mod estimate;
mod flows;
mod geometries;
mod interpreted;
mod lines;
mod means;
mod mesh_cells;
mod mesh_files;
mod mesh_generators;
mod mesh_gmsh;
mod mixed;
mod multigrid;
mod names;
mod output_vtu;
mod owner_sums;
mod pairs;
mod parts;
mod random_forms;
mod soundness;
mod threads;
mod vector_fields;
mod vector_multigrid;

#[path = "device/devices.rs"]
mod devices;
