//! Tests of the library and of `wf` as one program, which saves build time and lets them share the cores. Tests that
//! depend on neither, and those that take long to compile, are separate.

mod affine;
mod assemble;
mod bad_input;
mod between;
mod bounds;
mod cli;
mod complex;
mod convergence;
mod device_library;
mod device_run;
mod discontinuous;
mod eigen;
mod emit;
mod examples;
mod facade;
mod files;
mod flows;
mod fmt;
mod fuzz;
mod interpreter;
mod language;
mod levels;
mod means;
mod meeting;
mod newton;
mod numbers;
mod one_dimension;
mod outputs;
mod parts;
mod paths;
mod pictures;
mod plan;
mod point_states;
mod probe;
mod processes;
mod refine;
mod regions;
mod reports;
mod restart;
mod rotation;
mod rust_examples;
mod sides;
mod snapshots;
mod solvers;
mod stages;
mod start;
mod state;
mod steps;
mod suites;
mod supports;
mod system;
mod tables;
mod three_ways;
mod through_time;
mod time;
mod verify;

#[cfg(any(feature = "cuda", feature = "opencl"))]
#[path = "../runtime/tests/device/devices.rs"]
mod devices;
