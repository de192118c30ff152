//! Discretisation of a form: a mesh, its chunks, the spaces of the fields with their essential boundary conditions, and
//! auxiliary data.

mod fields;

use crate::mesh::distributed::PartInterface;
use crate::mesh::pairs::{CellPair, CellsBeyond, interior};
use crate::mesh::partition::Partition;
use crate::mesh::periodic::PeriodicError;
use crate::mesh::{Facet, Mesh, MeshError};
use crate::processes::Reduction;
use crate::processes::interface_exchange::{InterfaceExchange, SharedDof};
use crate::reference::{CellPair as MatchedPair, Cells, find_pairs};
use crate::space::beyond::with_writers;
use crate::space::constraint::Constraints;
use crate::space::constraint::affine::AffineConstraints;
use crate::space::{Space, SpaceError};
use crate::support::fingerprint::Fingerprint;
use crate::support::random::random_entries;
use fem_dsl::point::{
    Input, Integral, InteriorFacets, Location, Node, NodeId, Part, PointForm, Region, Slot,
    WHOLE_BOUNDARY,
};
pub use fields::{Field, FieldSupport};
use kernels_gen::element::{Element, Lagrange};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// Error of the extension of a discretisation to the whole mesh.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum WholeError {
    /// The mesh is too large for one process.
    #[error(transparent)]
    Mesh(#[from] PeriodicError),
    /// The degrees of freedom cannot be numbered.
    #[error(transparent)]
    Space(#[from] SpaceError),
}

/// Error of [`Discretisation::with_fields`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WithFieldsError {
    /// The degrees of freedom cannot be numbered.
    #[error(transparent)]
    Space(#[from] SpaceError),
    /// Facets that the mesh does not have.
    #[error(transparent)]
    Mesh(#[from] MeshError),
}

/// Auxiliary data of a form. Copies share the values.
#[derive(Clone, Debug, PartialEq)]
pub enum AuxValues {
    /// Values at the nodes of a space, node-major.
    Nodes(Arc<Space>, Arc<Vec<f64>>),
    /// Values per cell, `[cell][component]`.
    Cells(CellValues),
    /// Values per quadrature point, `[cell][point][component]`.
    Points(Arc<Vec<f64>>),
}

/// Values per cell, `[cell][component]`, also of the cells beyond a part.
#[derive(Clone, Debug, PartialEq)]
pub struct CellValues {
    own: Arc<Vec<f64>>,
    beyond: Arc<Vec<f64>>,
}

impl CellValues {
    /// Splits the values of `cells` cells of a mesh from those of the cells beyond it.
    pub(crate) fn split(mut own: Vec<f64>, count: usize) -> Self {
        let beyond = Arc::new(own.split_off(count));
        Self { own: Arc::new(own), beyond }
    }

    /// Returns the values of the mesh's cells.
    pub(crate) fn shared(&self) -> &Arc<Vec<f64>> {
        &self.own
    }

    /// Returns the values of the cells beyond a part.
    pub(crate) fn beyond(&self) -> &[f64] {
        &self.beyond
    }
}

impl std::ops::Deref for CellValues {
    type Target = [f64];

    fn deref(&self) -> &[f64] {
        &self.own
    }
}

impl AuxValues {
    /// Values at the nodes of a space, node-major.
    pub fn at_nodes(space: Space, numbers: Vec<f64>) -> Self {
        Self::Nodes(Arc::new(space), Arc::new(numbers))
    }

    /// Values per cell, `[cell][component]`.
    pub fn on_cells(numbers: Vec<f64>) -> Self {
        Self::Cells(CellValues { own: Arc::new(numbers), beyond: Arc::default() })
    }

    /// Values at quadrature points, `[cell][point][component]`.
    pub fn at_points(numbers: Vec<f64>) -> Self {
        Self::Points(Arc::new(numbers))
    }

    /// Returns all values.
    pub fn numbers(&self) -> &[f64] {
        match self {
            Self::Nodes(_, numbers) | Self::Points(numbers) => numbers,
            Self::Cells(numbers) => numbers,
        }
    }
}

/// A mesh with the spaces of a form.
#[derive(Clone, Debug, PartialEq)]
pub struct Discretisation {
    /// The mesh.
    pub mesh: Arc<Mesh>,
    /// The chunks of its cells.
    pub partition: Partition,
    /// The fields, in the form's order.
    pub fields: Vec<Field>,
    /// Auxiliary data, in the form's order.
    pub aux: Vec<AuxValues>,
    /// The facets of each integral of the form, in cell order; empty for integrals over cells.
    pub facets: Vec<Vec<Facet>>,
    /// The pairs of cells of each integral of the form; `None` for other integrals.
    pub pairs: Vec<Option<Vec<CellPair>>>,
    /// The cells of each integral of the form, ascending; `None` for all cells.
    pub cells: Vec<Option<Vec<u32>>>,
    /// Affine constraints between degrees of freedom of any fields.
    pub affine: Arc<AffineConstraints>,
    /// The degrees of freedom of a finer space at the points of the cells, for grid transfer kernels.
    pub targets: Option<Arc<TransferTargets>>,
}

/// Map from points of cells to degrees of freedom of a finer space.
#[derive(Clone, Debug)]
pub struct TransferTargets {
    /// The map of each cell.
    pub rows: Arc<dyn TargetRows>,
    /// Entries per cell.
    pub of_cell: usize,
    /// The length of the finer vector.
    pub len: usize,
}

/// Rows of [`TransferTargets`].
pub trait TargetRows: fmt::Debug + Send + Sync {
    /// Returns the number of cells.
    fn n_cells(&self) -> usize;

    /// Writes the row of a cell, `[component · points + point]`; `u32::MAX` if another cell writes the entry or there is
    /// none.
    fn row(&self, cell: usize, row: &mut [u32]);
}

impl PartialEq for TransferTargets {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.rows, &other.rows)
    }
}

/// Returns all pairs of cells of a mesh as the reference implementation finds them.
///
/// # Errors
///
/// Periodic sides that the mesh does not have.
pub fn matched_pairs(mesh: &Mesh) -> Result<Vec<MatchedPair>, MeshError> {
    let point = |&node: &u32| mesh.points()[node as usize][..mesh.dim()].to_vec();
    let number = |facet: &Facet| (facet.cell as usize, usize::from(facet.local));
    let side = |tag: &String| -> Result<Vec<(usize, usize)>, MeshError> {
        Ok(mesh.facets_tagged(tag)?.iter().map(number).collect())
    };
    let sides = mesh.periodic_sides().iter().map(|pair| {
        let [a, b] = &pair.tags;
        Ok([side(a)?, side(b)?])
    });
    Ok(find_pairs(&Cells {
        geometry: Lagrange::continuous(mesh.cell(), mesh.order())
            .expect("a mesh should have an element of its order"),
        nodes: mesh.nodes(),
        coordinates: &mesh.nodes().iter().flat_map(point).collect::<Vec<f64>>(),
        periodic: &sides.collect::<Result<Vec<_>, MeshError>>()?,
    }))
}

impl Discretisation {
    /// Numbers the fields, each given by its element and its number of components, without conditions or auxiliary
    /// data.
    pub fn new(
        mesh: impl Into<Arc<Mesh>>,
        fields: &[(impl Into<Element> + Copy, usize)],
    ) -> Result<Self, SpaceError> {
        let mesh = mesh.into();
        let fields: Vec<(Element, usize)> =
            fields.iter().map(|&(element, components)| (element.into(), components)).collect();
        let unknowns: usize = fields
            .iter()
            .map(|&(element, components)| components * Space::count_of(&mesh, element, components))
            .sum();
        let partition = Partition::new(&mesh, unknowns as f64 / mesh.n_cells().max(1) as f64);
        let field = |&(element, components): &(Element, usize)| {
            let space = Space::new(&mesh, &partition, element, components)?;
            Ok(Field::new(Arc::new(space)))
        };
        let fields = fields.iter().map(field).collect::<Result<_, SpaceError>>()?;
        let (aux, facets, pairs, cells) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (affine, targets) = (Arc::default(), None);
        Ok(Self { mesh, partition, fields, aux, facets, pairs, cells, affine, targets })
    }

    /// Creates a discretisation without conditions, with `fields` appended, the facets of another form, and the
    /// auxiliary data that it uses.
    ///
    /// # Errors
    ///
    /// Fields that cannot be numbered, or unknown facets.
    pub fn with_fields(
        &self,
        form: &PointForm,
        fields: &[(Element, usize)],
    ) -> Result<Self, WithFieldsError> {
        let mut all: Vec<Field> = self.fields.iter().map(Field::unconstrained).collect();
        for &(element, components) in fields {
            let space = Space::new(&self.mesh, &self.partition, element, components)?;
            all.push(Field::new(Arc::new(space)));
        }
        let mut on = self.of_fields(all);
        on.aux.truncate(form.aux.len());
        on.find_regions_of(form, self.fields.len())?;
        Ok(on)
    }

    /// Creates a discretisation of other fields on the same mesh with the same data, without regions.
    pub(crate) fn of_fields(&self, fields: Vec<Field>) -> Self {
        Self {
            mesh: Arc::clone(&self.mesh),
            partition: self.partition.clone(),
            fields,
            aux: self.aux.clone(),
            facets: Vec::new(),
            pairs: Vec::new(),
            cells: Vec::new(),
            affine: Arc::default(),
            targets: None,
        }
    }

    /// Checks the tags in a form and its conditions.
    ///
    /// # Errors
    ///
    /// All unknown tags.
    pub fn expect_tags<'a>(
        &self,
        form: &'a PointForm,
        conditions: impl IntoIterator<Item = &'a String>,
    ) -> Result<(), MeshError> {
        let of_form = form.integrals.iter().flat_map(|integral| match &integral.region {
            Region::Facets(tags) | Region::Interior(InteriorFacets::Under(tags)) => tags,
            Region::Cells | Region::CellsUnder(_) | Region::Interior(_) => &[][..],
        });
        let named = of_form.filter(|tag| *tag != WHOLE_BOUNDARY);
        self.mesh.expect_facet_tags(named)?;
        self.mesh.expect_condition_tags(conditions)
    }

    /// Finds the facets and cells of the form's integrals.
    ///
    /// # Errors
    ///
    /// The mesh has no facets or cells with a tag of the form, or such facets lie between two cells.
    pub fn find_regions(&mut self, form: &PointForm) -> Result<(), MeshError> {
        self.find_regions_of(form, usize::MAX)
    }

    /// Like [`find_regions`](Self::find_regions). Fields from number `measured` on are functionals of the others. Their
    /// integrals may use facets inside the domain if the integrand is single-valued there.
    fn find_regions_of(&mut self, form: &PointForm, measured: usize) -> Result<(), MeshError> {
        let cells = form.integrals.iter().map(|integral| match &integral.region {
            Region::CellsUnder(tags) => Ok(Some(self.mesh.cells_under(tags)?)),
            Region::Cells | Region::Facets(_) | Region::Interior(_) => Ok(None),
        });
        self.cells = cells.collect::<Result<_, MeshError>>()?;
        let whole = |tags: &[String]| tags.iter().any(|tag| tag == WHOLE_BOUNDARY);
        let facets = form.integrals.iter().map(|integral| match &integral.region {
            Region::Cells | Region::CellsUnder(_) | Region::Interior(_) => Ok(Vec::new()),
            Region::Facets(tags) if whole(tags) => Ok(self.mesh.boundary()),
            Region::Facets(tags) if self.has_one_value(form, integral, measured) => {
                self.mesh.facets_under(tags)
            }
            Region::Facets(tags) => self.mesh.outer_facets_under(tags),
        });
        self.facets = facets.collect::<Result<_, MeshError>>()?;
        let pairs = form.integrals.iter().map(|integral| match &integral.region {
            Region::Interior(facets) => interior(&self.mesh, facets).map(Some),
            _ => Ok(None),
        });
        self.pairs = pairs.collect::<Result<_, MeshError>>()?;
        self.reach_beyond(form);
        self.find_supports(form)
    }

    /// Returns the cells beyond a part, if an integral has pairs of cells.
    pub(crate) fn beyond(&self) -> Option<(&PartInterface, &CellsBeyond)> {
        let has_pairs = self.pairs.iter().any(Option::is_some);
        Some((self.mesh.cut().filter(|_| has_pairs)?, self.mesh.beyond()?))
    }

    /// Gives fields the degrees of freedom of the cells beyond a part: discontinuous ones, and the continuous ones of
    /// integrals over pairs of cells. Assigns these cells to chunks.
    fn reach_beyond(&mut self, form: &PointForm) {
        let Some((cut, beyond)) = self.beyond() else { return };
        let occurs = fields_between(form);
        let mut fields = self.fields.clone();
        for (field, occurs) in fields.iter_mut().zip(occurs) {
            let space = &field.space;
            let is_continuous = space.element().is_continuous();
            if space.reaches_beyond() || is_continuous && !occurs {
                continue;
            }
            field.space = Arc::new(match is_continuous {
                true => space.joining(cut, beyond),
                false => space.reaching(beyond),
            });
            *field = Field::new(Arc::clone(&field.space));
        }
        let spaces: Vec<&Space> = fields.iter().map(|field| &*field.space).collect();
        self.partition = with_writers(&self.partition, beyond, &spaces);
        self.fields = fields;
    }

    /// Returns whether a continuous field has nodes of cells beyond a part. Then chunks within the part have shared
    /// nodes, too.
    pub(crate) fn joins_beyond(&self) -> bool {
        self.fields.iter().any(|field| field.space.joins_beyond())
    }

    /// Returns the number of chunks with degrees of freedom of other processes; they come first.
    pub(crate) fn outer_chunks(&self) -> usize {
        match self.joins_beyond() {
            true => self.partition.chunks().len(),
            false => self.partition.outer(),
        }
    }

    /// Returns whether the integrand of a functional is single-valued on facets: no normals, no derivatives, nothing
    /// discontinuous.
    fn has_one_value(&self, form: &PointForm, integral: &Integral, measured: usize) -> bool {
        let continuous = |field: usize| {
            self.fields.get(field).is_some_and(|field| field.space.element().is_continuous())
        };
        let sided = integral.depends_on(|input| match input {
            Input::State(slot) => slot.part != Part::Value || !continuous(slot.field),
            Input::Aux(slot) => {
                let place = form.aux[slot.field].location;
                slot.part != Part::Value
                    || !matches!(place, Location::Nodes(fem_dsl::point::Space::H1(_)))
            }
            Input::Normal(_) | Input::Diameter(_) | Input::Extent(_) | Input::Direction(_) => true,
            Input::Param(..) | Input::Coordinate(_) | Input::Time | Input::Degree => false,
            Input::PenaltyFactor(_) => false,
            Input::Inverse(..) | Input::Tangent(..) | Input::Bend(..) | Input::Density(_) => true,
        });
        let measures = |(slot, node): &(Slot, NodeId)| {
            slot.field >= measured && slot.part == Part::Value && !sided[*node]
        };
        integral.residual.iter().all(measures)
    }

    /// Sets the conditions of each field.
    pub fn constrain(&mut self, conditions: Vec<Constraints>) {
        let fields = self.fields.iter_mut().zip(conditions);
        fields.for_each(|(field, own)| field.constraints = own);
    }

    /// Returns the cells of an integral; `None` for all cells.
    pub fn cells_of(&self, integral: usize) -> Option<&[u32]> {
        self.cells.get(integral)?.as_deref()
    }

    /// Returns the pairs of cells of an integral between cells.
    pub fn pairs_of(&self, integral: usize) -> Option<&[CellPair]> {
        self.pairs.get(integral)?.as_deref()
    }

    /// Returns whether some integral is over pairs of cells.
    pub fn has_pairs(&self) -> bool {
        self.pairs.iter().any(Option::is_some)
    }

    /// Returns the facets of an integral.
    pub fn facets_of(&self, integral: usize) -> &[Facet] {
        self.facets.get(integral).map_or(&[], Vec::as_slice)
    }

    /// Returns the facets of each integral, in the form of the reference implementation.
    pub fn numbered_facets(&self) -> Vec<Vec<(usize, usize)>> {
        let numbers = |facet: &Facet| (facet.cell as usize, usize::from(facet.local));
        self.facets.iter().map(|facets| facets.iter().map(numbers).collect()).collect()
    }

    /// Returns the pairs of cells of each integral between cells in the form of the reference implementation, which finds
    /// them itself.
    ///
    /// # Errors
    ///
    /// Tags that the mesh does not have.
    pub fn matched_pairs(&self, form: &PointForm) -> Result<Vec<Vec<MatchedPair>>, MeshError> {
        if !self.has_pairs() {
            return Ok(Vec::new());
        }
        let (mesh, all) = (&self.mesh, matched_pairs(&self.mesh)?);
        let number = |facet: &Facet| (facet.cell as usize, usize::from(facet.local));
        let of = |integral: &Integral| match &integral.region {
            Region::Interior(InteriorFacets::All) => Ok(all.clone()),
            Region::Interior(InteriorFacets::Under(tags)) => {
                let tagged: Vec<_> = mesh.facets_under(tags)?.iter().map(number).collect();
                let is_tagged =
                    |pair: &&MatchedPair| pair.sides.iter().any(|own| tagged.contains(own));
                Ok(all.iter().filter(is_tagged).copied().collect())
            }
            Region::Interior(InteriorFacets::Between(tags)) => {
                let [from, to] = [&tags[0], &tags[1]].map(|tag| mesh.cells_under([tag]));
                let (from, to) = (from?, to?);
                let is_between = |pair: &MatchedPair| {
                    let [inside, outside] = pair.sides.map(|(cell, _)| cell as u32);
                    from.binary_search(&inside).is_ok() && to.binary_search(&outside).is_ok()
                };
                let both = |pair: &MatchedPair| {
                    [*pair, pair.reversed(mesh.cell())].into_iter().find(is_between)
                };
                Ok(all.iter().filter_map(both).collect())
            }
            Region::Interior(InteriorFacets::Within(tags)) => {
                let cells = mesh.cells_under(tags)?;
                let is_in =
                    |&(cell, _): &(usize, usize)| cells.binary_search(&(cell as u32)).is_ok();
                let within = |pair: &&MatchedPair| pair.sides.iter().all(is_in);
                Ok(all.iter().filter(within).copied().collect())
            }
            Region::Cells | Region::CellsUnder(_) | Region::Facets(_) => Ok(Vec::new()),
        };
        form.integrals.iter().map(of).collect()
    }

    /// Creates a space for auxiliary data.
    pub fn aux_space(
        &self,
        element: impl Into<Element>,
        components: usize,
    ) -> Result<Space, SpaceError> {
        Space::of_data(&self.mesh, &self.partition, element, components)
    }

    /// Returns the number of degrees of freedom of all fields.
    pub fn n_dofs(&self) -> usize {
        self.fields.iter().map(|field| field.space.n_dofs()).sum()
    }

    /// Returns random entries of a vector, with a different seed on each process. Equal entries could repeat within a
    /// cell, and many operators annihilate constants. Shared entries differ between processes.
    pub(crate) fn noise(&self, seed: u64) -> Vec<f64> {
        random_entries(self.n_dofs(), self.seed(seed))
    }

    /// Returns a seed that differs between processes.
    pub(crate) fn seed(&self, seed: u64) -> u64 {
        let rank = self.mesh.cut().map_or(0, |cut| cut.group().rank() as u64);
        seed + 1000 * rank
    }

    /// Returns a hash of the meaning of vector entries: equal for the same spaces, field by field, on the same mesh,
    /// for any form, conditions and data.
    pub fn numbering(&self) -> u64 {
        let mut hash = Fingerprint::default();
        for field in &self.fields {
            hash.take(field.space.components() as u64);
            hash.text(&format!("{:?}", field.space.element()));
        }
        hash.mesh(self.mesh.nodes(), self.mesh.points());
        for pair in self.mesh.periodic_sides() {
            pair.tags.iter().for_each(|tag| hash.text(tag));
            if !pair.has_equal_values() {
                hash.text(&format!("{:?} {:?}", pair.map, pair.factor));
            }
        }
        hash.number()
    }

    /// Returns a hash of the order of vector entries: the points of the mesh and, for each field, the element and the
    /// nodes of each cell. It changes with the mesh, the elements, the periodic sides and the order of any of them.
    pub fn order_of_unknowns(&self) -> u64 {
        let mut hash = Fingerprint::default();
        hash.mesh(self.mesh.nodes(), self.mesh.points());
        for Field { space, .. } in &self.fields {
            hash.take(space.components() as u64);
            hash.text(&format!("{:?}", space.element()));
            space.nodes().iter().for_each(|&node| hash.take(u64::from(node)));
        }
        hash.number()
    }

    /// Returns the exchange of shared degrees of freedom, if the mesh is distributed.
    pub fn sharing(&self) -> Option<Arc<InterfaceExchange>> {
        let cut = self.mesh.cut()?;
        let fields = self.fields.iter().enumerate();
        let of_field = fields.map(|(number, field)| (self.dofs_of(number).start, &*field.space));
        let all = of_field.flat_map(|(start, space)| {
            space.shared_nodes().iter().flat_map(move |shared| {
                let components = space.components();
                let range = shared.nodes.start as usize * components
                    ..shared.nodes.end as usize * components;
                range.map(move |own| SharedDof { unknown: start + own, ranks: &shared.ranks })
            })
        });
        Some(Arc::new(InterfaceExchange::new(Arc::clone(cut.group()), all)))
    }

    /// Returns the position of each entry of this part in vectors of the whole mesh, for fields with the same elements;
    /// `None` if the mesh is no part. Collective.
    pub fn places_in(&self, whole: &Self) -> Option<Vec<usize>> {
        let cells = self.mesh.cut()?.cells().ok()?;
        let mut places = vec![0; self.n_dofs()];
        for (number, (own, all)) in self.fields.iter().zip(&whole.fields).enumerate() {
            let (from, to) = (self.dofs_of(number).start, whole.dofs_of(number).start);
            let components = own.space.components();
            for (here, &there) in cells.iter().enumerate() {
                let there = all.space.cell_nodes(there as usize);
                for (&here, &there) in own.space.cell_nodes(here).iter().zip(there) {
                    for c in 0..components {
                        places[from + here as usize * components + c] =
                            to + there as usize * components + c;
                    }
                }
            }
        }
        // Unknowns of cells beyond a part have the places that their owner knows.
        let mut numbers: Vec<f64> = places.iter().map(|&place| place as f64).collect();
        self.sharing()?.synchronise(&mut numbers);
        Some(numbers.into_iter().map(|place| place as usize).collect())
    }

    /// Gathers the vector on the whole mesh from all parts.
    pub fn gathered(&self, whole: &Self, u: &[f64]) -> Option<Vec<f64>> {
        let (places, sharing) = (self.places_in(whole)?, self.sharing()?);
        Some(sharing.gathered(u, &places, whole.n_dofs()))
    }

    /// Returns the same fields on the whole mesh, without conditions, data and regions; `None` if the mesh is no part.
    ///
    /// # Errors
    ///
    /// The mesh is too large for one process, or its degrees of freedom cannot be numbered.
    pub fn on_whole(&self) -> Result<Option<Self>, WholeError> {
        let Some(cut) = self.mesh.cut() else { return Ok(None) };
        let fields = self.fields.iter().map(|field| &field.space);
        let fields: Vec<_> = fields.map(|space| (space.element(), space.components())).collect();
        Ok(Some(Self::new(Arc::clone(cut.whole()?), &fields)?))
    }

    /// Like [`on_whole`](Self::on_whole), with the data of all parts and the vector on the whole mesh, on each process.
    /// `None` if the mesh is no part. Collective.
    ///
    /// # Errors
    ///
    /// Those of [`Self::on_whole`].
    pub fn joined(&self, u: &[f64]) -> Result<Option<(Self, Vec<f64>)>, WholeError> {
        let (Some(cut), Some(mut whole)) = (self.mesh.cut(), self.on_whole()?) else {
            return Ok(None);
        };
        let Some(u) = self.gathered(&whole, u) else { return Ok(None) };
        let (own, all) = (cut.cells()?, cut.whole()?.n_cells());
        // Values per cell; a process without cells does not know their number.
        let of_cells = |numbers: &[f64]| {
            let mut each = [(numbers.len() / own.len().max(1)) as f64];
            self.mesh.reduce_in_all(Reduction::Largest, &mut each);
            let each = each[0] as usize;
            let places = own.iter().flat_map(|&cell| {
                let first = cell as usize * each;
                first..first + each
            });
            self.spread(numbers.iter().copied().zip(places), all * each)
        };
        let mut aux = Vec::with_capacity(self.aux.len());
        for values in &self.aux {
            aux.push(match values {
                AuxValues::Cells(numbers) => AuxValues::on_cells(of_cells(numbers)),
                AuxValues::Points(numbers) => AuxValues::at_points(of_cells(numbers)),
                AuxValues::Nodes(space, numbers) => {
                    let components = space.components();
                    let of_whole = whole.aux_space(space.element(), components)?;
                    let nodes = own.iter().enumerate().flat_map(|(here, &there)| {
                        let there = of_whole.cell_nodes(there as usize).iter();
                        space.cell_nodes(here).iter().copied().zip(there.copied())
                    });
                    let places = nodes.flat_map(|(here, there)| {
                        let [here, there] = [here, there].map(|node| node as usize * components);
                        (0..components).map(move |c| (numbers[here + c], there + c))
                    });
                    let numbers = self.spread(places, of_whole.n_dofs());
                    AuxValues::at_nodes(of_whole, numbers)
                }
            });
        }
        whole.aux = aux;
        Ok(Some((whole, u)))
    }

    /// Combines values of the parts, each with its position, to those of the whole mesh; shared values that differ by
    /// rounding become the largest.
    fn spread(&self, own: impl Iterator<Item = (f64, usize)>, all: usize) -> Vec<f64> {
        let mut numbers = vec![f64::NEG_INFINITY; all];
        own.for_each(|(number, place)| numbers[place] = number);
        self.mesh.reduce_in_all(Reduction::Largest, &mut numbers);
        numbers
    }

    /// Returns the number of degrees of freedom of all fields on all processes, without those outside of the cells on
    /// which fields live.
    pub fn dofs_in_all(&self) -> usize {
        let (own, sharing) = (self.n_dofs(), self.sharing());
        let is_own =
            |dof: &usize| sharing.as_ref().is_none_or(|sharing| !sharing.is_of_others(*dof));
        let outside = self.outside().filter(is_own).count();
        let counted = sharing.as_ref().map_or(own, |sharing| sharing.counted(own));
        self.mesh.in_all(counted - outside)
    }

    /// Returns the range of each field in a vector.
    pub fn ranges(&self) -> Vec<Range<usize>> {
        (0..self.fields.len()).map(|field| self.dofs_of(field)).collect()
    }

    /// Returns the range of a field in a vector: fields are consecutive.
    pub fn dofs_of(&self, field: usize) -> Range<usize> {
        let lengths = || self.fields.iter().map(|field| field.space.n_dofs());
        let start = lengths().take(field).sum();
        start..start + lengths().nth(field).unwrap_or(0)
    }

    /// Returns the field, the node and the component of a vector entry.
    pub fn unknown(&self, dof: usize) -> Option<(usize, usize, usize)> {
        let field = (0..self.fields.len()).find(|&field| self.dofs_of(field).contains(&dof))?;
        let (own, components) =
            (dof - self.dofs_of(field).start, self.fields[field].space.components());
        Some((field, own / components, own % components))
    }

    /// Returns the constrained entries of all fields that this process owns: no smaller rank shares them.
    pub fn counted_conditions(&self) -> impl Iterator<Item = usize> {
        let sharing = self.sharing();
        let counts =
            move |dof: &usize| sharing.as_ref().is_none_or(|sharing| !sharing.is_of_others(*dof));
        self.conditions().map(|(dof, _)| dof).filter(counts)
    }

    /// Returns the constrained entries of all fields, with their values.
    pub fn conditions(&self) -> impl Iterator<Item = (usize, f64)> {
        self.fields.iter().enumerate().flat_map(|(number, field)| {
            let start = self.dofs_of(number).start;
            field.constraints.iter().map(move |(dof, value)| (start + dof, value))
        })
    }
}

/// Returns for each field of a form whether it occurs in an integral over pairs of cells.
fn fields_between(form: &PointForm) -> Vec<bool> {
    let mut occurs = vec![false; form.fields.len()];
    for integral in form.integrals.iter().filter(|integral| integral.region.is_interior()) {
        let rows = integral.residual.iter().chain(&integral.action).map(|(slot, _)| *slot);
        let inputs = integral.graph.nodes().iter().filter_map(|node| match node {
            &Node::Input(Input::State(slot)) => Some(slot),
            _ => None,
        });
        let columns = integral.jacobian.iter().map(|entry| entry.trial);
        rows.chain(inputs).chain(columns).for_each(|slot| occurs[slot.field] = true);
    }
    occurs
}
