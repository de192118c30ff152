//! Periodic boundaries: pairs of tags whose facets are identified, with their edges and vertices, in a [`Topology`].
//!
//! The [map](SideMap) of a pair takes each node of the first side to one of the second, facets to facets.
//!
//! Degrees of freedom are numbered on that topology; no kernel, vector or solver needs to know it. Geometry keeps its
//! points. Vertices, edges and faces are joined in equivalence classes, so that corners of several pairs are one point.
//! Each member stores the positions of its vertices in the first member's frame. This also covers a cell that lies
//! between both sides and contains one edge twice.

use super::point_hash::PointHash;
use super::shape::CellShape;
use super::side_map::SideMap;
use super::topology::{EntityClass, Topology};
use super::{Facet, Mesh, MeshError};
use std::collections::{BTreeSet, HashMap};

pub use fem_dsl::problem::{PeriodicMap, PeriodicSides};

/// Returns a note on two sides that are periodic according to the file.
pub(super) fn note([image, source]: [&str; 2]) -> String {
    format!(
        "the file says that two sides are images: `periodic \"{image}\" = \"{source}\";` joins them"
    )
}

/// Largest distance of a node from its image, relative to the shortest edge of the first side.
const TOLERANCE: f64 = 1e-4;

/// Error of the identification of two sides.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PeriodicError {
    /// An unknown tag, or facets between cells.
    #[error(transparent)]
    Mesh(#[from] MeshError),
    /// A facet that belongs to two sides.
    #[error("the facet of \"{tag}\" at {} belongs to another periodic side too", shown(.at))]
    Twice {
        /// The tag.
        tag: String,
        /// The mean of its vertices.
        at: [f64; 3],
    },
    /// A facet without a partner.
    #[error(
        "the facet of \"{tag}\" at {} has no partner on \"{other}\", where one should be at {}",
        shown(.at), shown(.image)
    )]
    Alone {
        /// The tag.
        tag: String,
        /// The tag of the other side.
        other: String,
        /// The mean of its vertices.
        at: [f64; 3],
        /// The expected mean of the partner's vertices.
        image: [f64; 3],
        /// The number of facets of the side, and of the other.
        counts: [usize; 2],
    },
    /// A side around the axis of rotation.
    #[error("the centre of \"{tag}\" lies on the axis about which it should be rotated")]
    OnAxis {
        /// The tag.
        tag: String,
    },
    /// Sides or spheres of which a process knows only a part.
    #[error(
        "a part of a mesh of triangles or tetrahedra cannot be refined where sides are periodic or on spheres"
    )]
    Part,
    /// Contradictory identifications.
    #[error("the periodic sides \"{tag}\" and \"{other}\" turn an edge or a face onto itself")]
    Turned {
        /// The tag.
        tag: String,
        /// The tag of the other side.
        other: String,
    },
}

impl PeriodicError {
    /// Returns advice on the error.
    pub fn remedy(&self) -> String {
        match self {
            Self::Mesh(_) => "name two parts of the boundary".to_owned(),
            Self::Part => "refine the mesh before parts of it are taken".to_owned(),
            Self::Twice { .. } => {
                "each facet has one partner; give the sides tags without common facets".to_owned()
            }
            Self::Alone { tag, other, counts: [a, b], .. } if a != b => format!(
                "\"{tag}\" has {a} facets, \"{other}\" {b}: mesh both sides alike (`Periodic Curve` or `Periodic \
                 Surface` in Gmsh)"
            ),
            Self::Alone { .. } | Self::Turned { .. } => {
                "the sides must be translations of each other, curved ones too; for a sector write `by rotation(about: \
                 …)` with a point of the axis"
                    .to_owned()
            }
            Self::OnAxis { .. } => {
                "write `by rotation(about: …)` with a point of the axis, or divide the side into two parts".to_owned()
            }
        }
    }

    /// Returns the tag that causes the error, if any.
    pub fn tag(&self) -> Option<&str> {
        match self {
            Self::Mesh(_) | Self::Part => None,
            Self::Twice { tag, .. }
            | Self::Alone { tag, .. }
            | Self::OnAxis { tag }
            | Self::Turned { tag, .. } => Some(tag),
        }
    }
}

fn shown(point: &[f64; 3]) -> String {
    let [x, y, z] = point.map(|x| (x * 1e9).round() / 1e9 + 0.0);
    format!("({x}, {y}, {z})")
}

impl Mesh {
    /// Identifies the facets of pairs of tags, which are translations of each other, or rotations by
    /// [`PeriodicSides`]. It replaces earlier identifications. Degrees of freedom on these facets are then identical,
    /// and the facets are no boundary; coordinates are unchanged.
    ///
    /// # Errors
    ///
    /// Unknown tags, and facets with no partner or with two.
    ///
    /// ```
    /// use fem_mesh::mesh::{Cell, CellOrdering, Mesh, MeshData};
    ///
    /// let parts = MeshData {
    ///     points: vec![[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 2.0, 0.0], [1.0, 2.0, 0.0]],
    ///     nodes: vec![0, 1, 2, 3],
    ///     ..MeshData::default()
    /// };
    /// let mut mesh = Mesh::new(Cell::Quadrilateral, 1, parts, CellOrdering::Sorted)?;
    /// mesh.tag_boundary("left", |x| x.iter().all(|x| x[0] == 0.0));
    /// mesh.tag_boundary("right", |x| x.iter().all(|x| x[0] == 1.0));
    /// assert_eq!(mesh.boundary().len(), 4);
    /// mesh.make_periodic(&[["left", "right"]])?;
    /// assert_eq!(mesh.boundary().len(), 2);
    /// assert_eq!(mesh.connectivity().n_vertices(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn make_periodic<S: Clone + Into<PeriodicSides>>(
        &mut self,
        pairs: &[S],
    ) -> Result<(), PeriodicError> {
        let pairs: Vec<PeriodicSides> = pairs.iter().cloned().map(Into::into).collect();
        (self.periodic, self.joined) = (Vec::new(), None);
        if pairs.is_empty() {
            return Ok(());
        }
        let mut classes = EntityClasses::new(&self.topology);
        let shape = CellShape::new(self.cell, self.order)?;
        let mut taken = BTreeSet::new();
        for pair in &pairs {
            let [tag, other] = &pair.tags;
            let sides =
                [TaggedSide::new(self, &shape, tag)?, TaggedSide::new(self, &shape, other)?];
            for side in &sides {
                for facet in &side.facets {
                    if !taken.insert(self.topology.facet_entity(*facet)) {
                        let (tag, at) = (side.tag.clone(), self.middle(*facet));
                        return Err(PeriodicError::Twice { tag, at });
                    }
                }
            }
            let images = self.images(&shape, &sides, &self.side_map(pair.map, &sides)?)?;
            let turned = || PeriodicError::Turned { tag: tag.clone(), other: other.clone() };
            classes.join(&self.topology, &images).ok_or_else(turned)?;
        }
        let done = |text: &String| {
            let told = |[a, b]: &[String; 2]| *text == note([a, b]) || *text == note([b, a]);
            pairs.iter().any(|pair| told(&pair.tags))
        };
        self.notes.retain(|text| !done(text));
        (self.periodic, self.joined) =
            (pairs, Some(Box::new(classes.into_topology(&self.topology))));
        Ok(())
    }

    /// Returns the connectivity of the degrees of freedom: the topology with periodic entities identified.
    pub fn connectivity(&self) -> &Topology {
        self.joined.as_deref().unwrap_or(&self.topology)
    }

    /// Returns the pairs of periodic sides.
    pub fn periodic_sides(&self) -> &[PeriodicSides] {
        &self.periodic
    }

    /// Returns the map of the first side of a pair to the second.
    ///
    /// # Errors
    ///
    /// Unknown tags, or a side around the axis.
    pub fn map_of_sides(&self, pair: &PeriodicSides) -> Result<SideMap, PeriodicError> {
        let shape = CellShape::new(self.cell, self.order)?;
        let [tag, other] = &pair.tags;
        let sides = [TaggedSide::new(self, &shape, tag)?, TaggedSide::new(self, &shape, other)?];
        self.side_map(pair.map, &sides)
    }

    fn side_map(
        &self,
        map: PeriodicMap,
        sides: &[TaggedSide; 2],
    ) -> Result<SideMap, PeriodicError> {
        let points = sides.each_ref().map(|side| {
            side.points.iter().map(|&point| self.points[point as usize]).collect::<Vec<_>>()
        });
        let within = TOLERANCE * sides[0].shortest(self);
        SideMap::between(map, [&points[0], &points[1]], within)
            .map_err(|at| PeriodicError::OnAxis { tag: sides[at].tag.clone() })
    }

    /// Returns whether the mesh has periodic sides.
    pub fn is_periodic(&self) -> bool {
        !self.periodic.is_empty()
    }

    /// Returns for each facet of the first side its image on the second, with the images of its vertices.
    fn images(
        &self,
        shape: &CellShape,
        sides: &[TaggedSide; 2],
        map: &SideMap,
    ) -> Result<Vec<FacetImage>, PeriodicError> {
        let [first, second] = sides;
        let tolerance = TOLERANCE * first.shortest(self);
        let mut targets = PointHash::new(&self.points, tolerance);
        second.points.iter().for_each(|&point| targets.insert(point));
        let sorted = |mut vertices: Vec<u32>| {
            vertices.sort_unstable();
            vertices
        };
        let partners: HashMap<Vec<u32>, Facet> = second
            .facets
            .iter()
            .map(|&facet| (sorted(self.facet_vertices(facet)), facet))
            .collect();
        let moved = |at: [f64; 3]| map.image(&at);
        let counts = [first.facets.len(), second.facets.len()];
        let alone = |facet: Facet| {
            let at = self.middle(facet);
            let (tag, other) = (first.tag.clone(), second.tag.clone());
            PeriodicError::Alone { tag, other, at, image: moved(at), counts }
        };
        let mut images = Vec::with_capacity(first.facets.len());
        for &facet in &first.facets {
            let image = |node: u32| targets.find(moved(self.points[node as usize]));
            // The inner nodes of curved facets must match, too.
            let all: Option<Vec<u32>> = nodes_on(self, shape, facet).map(image).collect();
            let vertices = self.facet_vertices(facet);
            let own: Option<Vec<u32>> = vertices.iter().map(|&vertex| image(vertex)).collect();
            let (Some(_), Some(own)) = (all, own) else { return Err(alone(facet)) };
            let partner = partners.get(&sorted(own.clone())).ok_or_else(|| alone(facet))?;
            let pairs = vertices.into_iter().zip(own).collect();
            images.push(FacetImage { from: facet, to: *partner, pairs });
        }
        if counts[0] != counts[1] {
            let reached: Vec<Facet> = images.iter().map(|image| image.to).collect();
            let left = second.facets.iter().find(|facet| !reached.contains(facet));
            let at = self.middle(*left.unwrap_or(&second.facets[0]));
            let image = map.preimage(&at);
            let (tag, other) = (second.tag.clone(), first.tag.clone());
            let counts = [counts[1], counts[0]];
            return Err(PeriodicError::Alone { tag, other, at, image, counts });
        }
        Ok(images)
    }
}

/// Returns the geometry nodes on a facet.
fn nodes_on<'a>(
    mesh: &'a Mesh,
    shape: &'a CellShape,
    facet: Facet,
) -> impl Iterator<Item = u32> + 'a {
    let nodes = mesh.cell_nodes(facet.cell as usize);
    shape.facet_nodes[usize::from(facet.local)].iter().map(|&local| nodes[local])
}

/// A facet with its image, and pairs of vertices.
struct FacetImage {
    from: Facet,
    to: Facet,
    pairs: Vec<(u32, u32)>,
}

/// The facets of a tag.
struct TaggedSide {
    tag: String,
    facets: Vec<Facet>,
    /// Their geometry nodes, without duplicates.
    points: Vec<u32>,
}

impl TaggedSide {
    fn new(mesh: &Mesh, shape: &CellShape, tag: &String) -> Result<Self, MeshError> {
        let facets = mesh.outer_facets_under([tag])?;
        let mut points: Vec<u32> =
            facets.iter().flat_map(|&facet| nodes_on(mesh, shape, facet)).collect();
        points.sort_unstable();
        points.dedup();
        Ok(Self { tag: tag.clone(), facets, points })
    }

    /// Returns the smallest distance between two vertices of a facet.
    fn shortest(&self, mesh: &Mesh) -> f64 {
        let lengths = self.facets.iter().flat_map(|&facet| {
            let at = mesh.facet_vertices(facet).into_iter().map(|v| mesh.points[v as usize]);
            let at: Vec<[f64; 3]> = at.collect();
            let pairs = (0..at.len()).flat_map(|i| (0..i).map(move |j| (i, j)));
            let lengths = pairs
                .map(|(i, j)| (0..3).map(|c| (at[i][c] - at[j][c]).powi(2)).sum::<f64>().sqrt());
            lengths.collect::<Vec<f64>>()
        });
        lengths.fold(f64::INFINITY, f64::min)
    }
}

/// Equivalence classes of the entities of one dimension.
struct EquivalenceClasses(Vec<EntityClass>);

impl EquivalenceClasses {
    fn new(count: usize) -> Self {
        Self((0..count as u32).map(|own| EntityClass { first: own, place: [0, 1, 2, 3] }).collect())
    }

    /// Returns the first member of an entity's class, and the positions of the entity's vertices in it.
    fn find(&self, mut entity: u32) -> EntityClass {
        let mut place = [0, 1, 2, 3];
        loop {
            let EntityClass { first, place: own } = self.0[entity as usize];
            if first == entity {
                return EntityClass { first, place };
            }
            place = place.map(|at: u8| own[usize::from(at)]);
            entity = first;
        }
    }

    /// Joins two entities; vertex i of `a` is vertex `places[i]` of `b`. `None` if they are joined already in another
    /// way.
    fn join(&mut self, a: u32, b: u32, places: [u8; 4]) -> Option<()> {
        let (a, b) = (self.find(a), self.find(b));
        // Vertex i of a has position a.place[i] in a's first member and b.place[places[i]] in b's.
        let mut across = [0u8; 4];
        for i in 0..4 {
            across[usize::from(a.place[i])] = b.place[usize::from(places[i])];
        }
        if a.first == b.first {
            return (across == [0, 1, 2, 3]).then_some(());
        }
        let mut back = [0u8; 4];
        for i in 0..4 {
            back[usize::from(across[i])] = i as u8;
        }
        let (low, high, place) = match a.first < b.first {
            true => (a.first, b.first, back),
            false => (b.first, a.first, across),
        };
        self.0[high as usize] = EntityClass { first: low, place };
        Some(())
    }

    /// Returns the class of each entity.
    fn settled(self) -> Vec<EntityClass> {
        (0..self.0.len() as u32).map(|entity| self.find(entity)).collect()
    }
}

/// Equivalence classes of vertices, edges and faces.
struct EntityClasses {
    vertices: EquivalenceClasses,
    edges: EquivalenceClasses,
    faces: EquivalenceClasses,
}

impl EntityClasses {
    fn new(topology: &Topology) -> Self {
        Self {
            vertices: EquivalenceClasses::new(topology.n_vertices()),
            edges: EquivalenceClasses::new(topology.edges().len()),
            faces: EquivalenceClasses::new(topology.faces().len()),
        }
    }

    /// Joins facets and their edges and vertices with their images.
    fn join(&mut self, topology: &Topology, images: &[FacetImage]) -> Option<()> {
        let cell = topology.cell();
        for FacetImage { from, to, pairs } in images {
            let image = |vertex: u32| pairs.iter().find(|(own, _)| *own == vertex).map(|p| p.1);
            for &(own, image) in pairs {
                self.vertices.join(own, image, [0, 1, 2, 3])?;
            }
            for dim in 1..cell.dim() {
                let (entities, joined) = match dim {
                    1 => (topology.edges(), &mut self.edges),
                    _ => (topology.faces(), &mut self.faces),
                };
                let on = |facet: &Facet| {
                    let corners = cell.facets()[usize::from(facet.local)];
                    let of_cell = entities.of_cell(facet.cell as usize);
                    let locals = cell.entities(dim).iter().zip(of_cell);
                    let on = locals.filter(|(own, _)| own.iter().all(|v| corners.contains(v)));
                    on.map(|(_, &entity)| entity).collect::<Vec<u32>>()
                };
                let theirs = on(to);
                for own in on(from) {
                    let vertices = entities.vertices(own as usize).iter();
                    let images = vertices.map(|&v| image(v)).collect::<Option<Vec<u32>>>()?;
                    let places = |other: u32| {
                        let all = entities.vertices(other as usize);
                        let mut places = [0, 1, 2, 3];
                        for (place, image) in places.iter_mut().zip(&images) {
                            *place = all.iter().position(|v| v == image)? as u8;
                        }
                        Some(places)
                    };
                    let (other, places) =
                        theirs.iter().find_map(|&other| Some((other, places(other)?)))?;
                    joined.join(own, other, places)?;
                }
            }
        }
        Some(())
    }

    fn into_topology(self, topology: &Topology) -> Topology {
        let [vertices, edges, faces] =
            [self.vertices, self.edges, self.faces].map(EquivalenceClasses::settled);
        topology.joined(&vertices, &edges, &faces)
    }
}
