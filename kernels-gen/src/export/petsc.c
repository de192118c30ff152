/* A program on PETSc that solves the form `$NAME` on a box or a mesh file.

   Build:  mpicc -O2 driver.c -o driver $(pkg-config --cflags --libs petsc) -lm
   Run:    ./driver -dm_plex_box_faces 8,8,8 -FIELD_x0 0 -snes_monitor -pc_type lu -solution_view vtk:solution.vtu

   -FIELD_TAG v,…       FIELD is fixed to these components on the part TAG of the boundary: x0, x1, y0, y1, z0, z1 on a
                        box, `all`, or the name of a label (-dm_plex_filename m.msh -dm_plex_gmsh_use_regions)
   -FIELD_initial v,…   the initial value
   -param_NAME v,…      another value of a parameter
   -probe               prints R(u)·v and v·J(u)w at the polynomials of `polynomial`, without conditions
   Forms with dt(…) run through TS (-ts_type, -ts_dt, -ts_max_time), others through SNES. */

#include "$NAME.h"
#include <petscdmplex.h>
#include <petscsnes.h>
#include <petscts.h>

#define MAX_COMPONENTS 64

/* Polynomials of degree 1, or 2 where the element has it. */
typedef enum {
  STATE,
  DIRECTION,
  TEST,
  DATA,
  RATE
} Kind;

typedef struct {
  Kind     kind;
  PetscInt row, degree; /* the number of components of the fields before this one */
} Polynomial;

static PetscErrorCode polynomial(PetscInt dim, PetscReal time, const PetscReal x[], PetscInt Nc, PetscScalar *u, void *ctx)
{
  const Polynomial *p = (const Polynomial *)ctx;

  (void)time;
  for (PetscInt c = 0; c < Nc; c++) {
    u[c] = p->kind == STATE || p->kind == DATA ? 0.5 : 0.3;
    for (PetscInt k = 0; k < dim; k++) {
      const PetscReal a = 0.02 * ((3 * (p->row + c) + 5 * (PetscInt)p->kind + 7 * k) % 9 - 4);

      u[c] += a * x[k] + (p->degree > 1 ? a * x[k] * x[(k + 1) % dim] : 0.0);
    }
  }
  return 0;
}

static PetscErrorCode constant(PetscInt dim, PetscReal time, const PetscReal x[], PetscInt Nc, PetscScalar *u, void *ctx)
{
  (void)dim;
  (void)time;
  (void)x;
  for (PetscInt c = 0; c < Nc; c++) u[c] = ctx ? ((const PetscScalar *)ctx)[c] : 0.0;
  return 0;
}

static PetscErrorCode default_option(const char name[], const char value[])
{
  PetscBool set;

  PetscFunctionBeginUser;
  PetscCall(PetscOptionsHasName(NULL, NULL, name, &set));
  if (!set) PetscCall(PetscOptionsSetValue(NULL, name, value));
  PetscFunctionReturn(0);
}

static PetscErrorCode create_mesh(DM *dm)
{
  char dim[8];

  PetscFunctionBeginUser;
  PetscCall(PetscSNPrintf(dim, sizeof(dim), "%d", (int)$NAME_DIM));
  PetscCall(default_option("-dm_plex_dim", dim));
  PetscCall(default_option("-dm_plex_simplex", "0"));
  PetscCall(DMCreate(PETSC_COMM_WORLD, dm));
  PetscCall(DMSetType(*dm, DMPLEX));
  PetscCall(DMSetFromOptions(*dm));
  PetscCall(DMViewFromOptions(*dm, NULL, "-dm_view"));
  PetscFunctionReturn(0);
}

/* Adds Lagrange elements with the form's quadrature; -FIELD_petscspace_degree changes a degree. */
static PetscErrorCode create_fields(DM dm, const WeakformField fields[])
{
  PetscBool simplex;

  PetscFunctionBeginUser;
  PetscCall(DMPlexIsSimplex(dm, &simplex));
  for (PetscInt f = 0; fields[f].name; f++) {
    char    prefix[256], option[512], degree[16];
    PetscFE fe;

    PetscCall(PetscSNPrintf(prefix, sizeof(prefix), "%s_", fields[f].name));
    PetscCall(PetscSNPrintf(option, sizeof(option), "-%spetscspace_degree", prefix));
    PetscCall(PetscSNPrintf(degree, sizeof(degree), "%d", (int)fields[f].degree));
    PetscCall(default_option(option, degree));
    PetscCall(PetscSNPrintf(option, sizeof(option), "-%spetscdualspace_lagrange_continuity", prefix));
    PetscCall(default_option(option, fields[f].continuous ? "1" : "0"));
    PetscCall(PetscFECreateDefault(PETSC_COMM_WORLD, $NAME_DIM, fields[f].components, simplex, prefix, $NAME_QUADRATURE_POINTS - 1, &fe));
    PetscCall(PetscObjectSetName((PetscObject)fe, fields[f].name));
    PetscCall(DMSetField(dm, f, NULL, (PetscObject)fe));
    PetscCall(PetscFEDestroy(&fe));
  }
  PetscCall(DMCreateDS(dm));
  PetscFunctionReturn(0);
}

/* Finds the label and the values of a tag: the whole boundary for NULL, a label of this name, or a side of a box. */
static PetscErrorCode find_tag(DM dm, const char tag[], DMLabel *label, PetscInt *count, PetscInt values[])
{
  const char *const sides[3][6] = {
    {"x0", "x1"},
    {"y0", "x1", "y1", "x0"},
    {"z0", "z1", "y0", "y1", "x1", "x0"}
  };

  PetscFunctionBeginUser;
  *count    = 1;
  values[0] = 1;
  if (!tag || !strcmp(tag, "all")) {
    PetscCall(DMGetLabel(dm, "the whole boundary", label));
    if (!*label) {
      PetscCall(DMCreateLabel(dm, "the whole boundary"));
      PetscCall(DMGetLabel(dm, "the whole boundary", label));
      PetscCall(DMPlexMarkBoundaryFaces(dm, 1, *label));
    }
    PetscFunctionReturn(0);
  }
  PetscCall(DMGetLabel(dm, tag, label));
  if (*label) {
    IS              is;
    const PetscInt *points;

    PetscCall(DMLabelGetNumValues(*label, count));
    *count = PetscMin(*count, MAX_COMPONENTS);
    PetscCall(DMLabelGetValueIS(*label, &is));
    PetscCall(ISGetIndices(is, &points));
    for (PetscInt v = 0; v < *count; v++) values[v] = points[v];
    PetscCall(ISRestoreIndices(is, &points));
    PetscCall(ISDestroy(&is));
    PetscFunctionReturn(0);
  }
  PetscCall(DMGetLabel(dm, "Face Sets", label));
  for (PetscInt s = 0; s < 2 * $NAME_DIM; s++) {
    if (*label && !strcmp(tag, sides[$NAME_DIM - 1][s])) {
      values[0] = s + 1;
      PetscFunctionReturn(0);
    }
  }
  *count = 0;
  PetscFunctionReturn(0);
}

/* Registers the terms over parts of the cells and of the boundary. */
static PetscErrorCode add_regions(DM dm, PetscDS ds, const WeakformRegion regions[], PetscBool boundary)
{
  PetscFunctionBeginUser;
  for (PetscInt r = 0; regions[r].add; r++) {
    PetscInt tag = 0;

    do {
      const char   *name = regions[r].tags[tag];
      DMLabel       label;
      PetscInt      count, values[MAX_COMPONENTS], bd;
      PetscWeakForm wf;

      PetscCall(find_tag(dm, name, &label, &count, values));
      PetscCheck(count, PETSC_COMM_WORLD, PETSC_ERR_USER, "the mesh has no label %s", name);
      for (PetscInt v = 0; v < count; v++) {
        if (boundary) {
          PetscCall(DMAddBoundary(dm, DM_BC_NATURAL, name ? name : "all", label, 1, &values[v], regions[r].field, 0, NULL, NULL, NULL, NULL, &bd));
          PetscCall(PetscDSGetBoundary(ds, bd, &wf, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
        } else {
          PetscCall(PetscDSGetWeakForm(ds, &wf));
        }
        PetscCall(regions[r].add(wf, label, values[v]));
      }
      tag++;
    } while (regions[r].tags[tag - 1] && regions[r].tags[tag]);
  }
  PetscFunctionReturn(0);
}

/* Fixes a field on a part of the boundary, if there is an option for it. */
static PetscErrorCode fix(DM dm, PetscInt field, const char tag[])
{
  char         option[512];
  PetscScalar *value;
  PetscInt     n = MAX_COMPONENTS, count, values[MAX_COMPONENTS];
  PetscBool    set;
  DMLabel      label;

  PetscFunctionBeginUser;
  PetscCall(PetscSNPrintf(option, sizeof(option), "-%s_%s", $NAME_fields[field].name, tag));
  PetscCall(PetscOptionsHasName(NULL, NULL, option, &set));
  if (!set) PetscFunctionReturn(0);
  PetscCall(PetscCalloc1(MAX_COMPONENTS, &value)); /* lives as long as the condition */
  PetscCall(PetscOptionsGetScalarArray(NULL, NULL, option, value, &n, NULL));
  PetscCall(find_tag(dm, tag, &label, &count, values));
  for (PetscInt v = 0; v < count; v++) PetscCall(DMAddBoundary(dm, DM_BC_ESSENTIAL, tag, label, 1, &values[v], field, 0, NULL, (void (*)(void))constant, NULL, value, NULL));
  PetscFunctionReturn(0);
}

static PetscErrorCode add_conditions(DM dm)
{
  const char *const sides[] = {"x0", "x1", "y0", "y1", "z0", "z1", "all"};
  PetscInt          labels;

  PetscFunctionBeginUser;
  PetscCall(DMGetNumLabels(dm, &labels));
  for (PetscInt f = 0; $NAME_fields[f].name; f++) {
    for (PetscInt s = 0; s < 7; s++) PetscCall(fix(dm, f, sides[s]));
    for (PetscInt l = 0; l < labels; l++) {
      const char *name;

      PetscCall(DMGetLabelName(dm, l, &name));
      PetscCall(fix(dm, f, name));
    }
  }
  PetscFunctionReturn(0);
}

static PetscErrorCode set_parameters(PetscDS ds)
{
  PetscScalar constants[$NAME_CONSTANTS + 1];

  PetscFunctionBeginUser;
  for (PetscInt i = 0; i < $NAME_CONSTANTS; i++) constants[i] = $NAME_constants[i];
  for (PetscInt p = 0; $NAME_parameters[p].name; p++) {
    char     option[512];
    PetscInt n = $NAME_parameters[p].components;

    PetscCall(PetscSNPrintf(option, sizeof(option), "-param_%s", $NAME_parameters[p].name));
    PetscCall(PetscOptionsGetScalarArray(NULL, NULL, option, &constants[$NAME_parameters[p].first], &n, NULL));
  }
  PetscCall(PetscDSSetConstants(ds, $NAME_CONSTANTS, constants));
  PetscFunctionReturn(0);
}

/* Interpolates the polynomials of a kind; local vectors include the constrained degrees of freedom. */
static PetscErrorCode interpolate(DM dm, const WeakformField fields[], Kind kind, PetscBool local, Vec v)
{
  Polynomial polynomials[MAX_COMPONENTS];
  void      *contexts[MAX_COMPONENTS];
  PetscInt   row = 0;
  PetscErrorCode (*functions[MAX_COMPONENTS])(PetscInt, PetscReal, const PetscReal[], PetscInt, PetscScalar *, void *);

  PetscFunctionBeginUser;
  for (PetscInt f = 0; fields[f].name; f++) {
    polynomials[f].kind   = kind;
    polynomials[f].row    = row;
    polynomials[f].degree = fields[f].degree;
    functions[f]          = polynomial;
    contexts[f]           = &polynomials[f];
    row += fields[f].components;
  }
  if (local) PetscCall(DMProjectFunctionLocal(dm, 0.0, functions, contexts, INSERT_ALL_VALUES, v));
  else PetscCall(DMProjectFunction(dm, 0.0, functions, contexts, INSERT_ALL_VALUES, v));
  PetscFunctionReturn(0);
}

/* Attaches the data: replace the polynomials by your own. */
static PetscErrorCode create_data(DM dm)
{
  DM  data, coordinates;
  Vec values;

  PetscFunctionBeginUser;
  if (!$NAME_data[0].name) PetscFunctionReturn(0);
  PetscCall(DMGetCoordinateDM(dm, &coordinates));
  PetscCall(DMClone(dm, &data));
  PetscCall(DMSetCoordinateDM(data, coordinates));
  PetscCall(create_fields(data, $NAME_data));
  PetscCall(DMCreateLocalVector(data, &values));
  PetscCall(interpolate(data, $NAME_data, DATA, PETSC_TRUE, values));
  PetscCall(DMSetAuxiliaryVec(dm, NULL, 0, 0, values));
  PetscCall(VecDestroy(&values));
  PetscCall(DMDestroy(&data));
  PetscFunctionReturn(0);
}

/* Prints R(u)·v and v·J(u)w. With time derivatives u_t = shift u + r. */
static PetscErrorCode probe(DM dm, SNES snes, TS ts)
{
  const PetscReal shift = 2.5, time = 0.7;
  Vec             u, v, w, r, u_t;
  Mat             J;
  PetscScalar     residual, jacobian;

  PetscFunctionBeginUser;
  PetscCall(DMCreateGlobalVector(dm, &u));
  PetscCall(VecDuplicate(u, &v));
  PetscCall(VecDuplicate(u, &w));
  PetscCall(VecDuplicate(u, &r));
  PetscCall(VecDuplicate(u, &u_t));
  PetscCall(interpolate(dm, $NAME_fields, STATE, PETSC_FALSE, u));
  PetscCall(interpolate(dm, $NAME_fields, DIRECTION, PETSC_FALSE, w));
  PetscCall(interpolate(dm, $NAME_fields, TEST, PETSC_FALSE, v));
  PetscCall(interpolate(dm, $NAME_fields, RATE, PETSC_FALSE, u_t));
  PetscCall(VecAXPY(u_t, shift, u));
  PetscCall(DMCreateMatrix(dm, &J));
  if (ts) {
    PetscCall(TSComputeIFunction(ts, time, u, u_t, r, PETSC_FALSE));
    PetscCall(TSComputeIJacobian(ts, time, u, u_t, shift, J, J, PETSC_FALSE));
  } else {
    PetscCall(SNESComputeFunction(snes, u, r));
    PetscCall(SNESComputeJacobian(snes, u, J, J));
  }
  PetscCall(VecDot(r, v, &residual));
  PetscCall(MatMult(J, w, r));
  PetscCall(VecDot(r, v, &jacobian));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "R(u)·v %.16e\nv·J(u)w %.16e\n", (double)residual, (double)jacobian));
  PetscCall(MatDestroy(&J));
  PetscCall(VecDestroy(&u_t));
  PetscCall(VecDestroy(&r));
  PetscCall(VecDestroy(&w));
  PetscCall(VecDestroy(&v));
  PetscCall(VecDestroy(&u));
  PetscFunctionReturn(0);
}

/* The component that `integrand` takes; beyond the last one the sum of squares. */
static PetscInt integrated_field = 0, integrated_component = 0;

static void integrand(PetscInt dim, PetscInt Nf, PetscInt NfAux, const PetscInt uOff[], const PetscInt uOff_x[],
  const PetscScalar u[], const PetscScalar u_t[], const PetscScalar u_x[], const PetscInt aOff[], const PetscInt aOff_x[],
  const PetscScalar a[], const PetscScalar a_t[], const PetscScalar a_x[], PetscReal t, const PetscReal x[],
  PetscInt numConstants, const PetscScalar constants[], PetscScalar value[])
{
  const PetscScalar *own        = &u[uOff[integrated_field]];
  const PetscInt     components = $NAME_fields[integrated_field].components;

  (void)dim, (void)Nf, (void)NfAux, (void)uOff_x, (void)u_t, (void)u_x, (void)aOff, (void)aOff_x, (void)a;
  (void)a_t, (void)a_x, (void)t, (void)x, (void)numConstants, (void)constants;
  value[0] = integrated_component < components ? own[integrated_component] : 0.0;
  if (integrated_component == components) {
    for (PetscInt c = 0; c < components; c++) value[0] += own[c] * own[c];
  }
}

/* Prints the integral of each component, and that of the square of each field. */
static PetscErrorCode measure(DM dm, PetscDS ds, Vec u)
{
  PetscScalar integrals[MAX_COMPONENTS];

  PetscFunctionBeginUser;
  for (PetscInt f = 0; $NAME_fields[f].name; f++) {
    integrated_field = f;
    PetscCall(PetscDSSetObjective(ds, f, integrand));
    for (PetscInt c = 0; c <= $NAME_fields[f].components; c++) {
      integrated_component = c;
      PetscCall(DMPlexComputeIntegralFEM(dm, u, integrals, NULL));
      if (c < $NAME_fields[f].components) PetscCall(PetscPrintf(PETSC_COMM_WORLD, "integral %s[%d] %.16e\n", $NAME_fields[f].name, (int)c, (double)integrals[f]));
      else PetscCall(PetscPrintf(PETSC_COMM_WORLD, "square %s %.16e\n", $NAME_fields[f].name, (double)integrals[f]));
    }
  }
  PetscFunctionReturn(0);
}

/* Sets the initial values, 0 without an option. */
static PetscErrorCode initialise(DM dm, Vec u)
{
  PetscScalar values[MAX_COMPONENTS][MAX_COMPONENTS] = {{0.0}};
  void       *contexts[MAX_COMPONENTS];
  PetscErrorCode (*functions[MAX_COMPONENTS])(PetscInt, PetscReal, const PetscReal[], PetscInt, PetscScalar *, void *);

  PetscFunctionBeginUser;
  for (PetscInt f = 0; $NAME_fields[f].name; f++) {
    char     option[512];
    PetscInt n = MAX_COMPONENTS;

    PetscCall(PetscSNPrintf(option, sizeof(option), "-%s_initial", $NAME_fields[f].name));
    PetscCall(PetscOptionsGetScalarArray(NULL, NULL, option, values[f], &n, NULL));
    functions[f] = constant;
    contexts[f]  = values[f];
  }
  PetscCall(DMProjectFunction(dm, 0.0, functions, contexts, INSERT_VALUES, u));
  PetscFunctionReturn(0);
}

int main(int argc, char **argv)
{
  DM        dm;
  PetscDS   ds;
  SNES      snes = NULL;
  TS        ts   = NULL;
  Vec       u;
  PetscBool probing;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(PetscOptionsHasName(NULL, NULL, "-probe", &probing));
  PetscCall(create_mesh(&dm));
  PetscCall(create_fields(dm, $NAME_fields));
  PetscCall(DMGetDS(dm, &ds));
  PetscCall($NAME_setup(ds));
  PetscCall(set_parameters(ds));
  PetscCall(add_regions(dm, ds, $NAME_cells, PETSC_FALSE));
  PetscCall(add_regions(dm, ds, $NAME_boundary, PETSC_TRUE));
  if (!probing) PetscCall(add_conditions(dm));
  PetscCall(create_data(dm));
  if ($NAME_TIME) {
    PetscCall(DMTSSetBoundaryLocal(dm, DMPlexTSComputeBoundary, NULL));
    PetscCall(DMTSSetIFunctionLocal(dm, DMPlexTSComputeIFunctionFEM, NULL));
    PetscCall(DMTSSetIJacobianLocal(dm, DMPlexTSComputeIJacobianFEM, NULL));
    PetscCall(TSCreate(PETSC_COMM_WORLD, &ts));
    PetscCall(TSSetDM(ts, dm));
    PetscCall(TSSetType(ts, TSBEULER));
    PetscCall(TSSetExactFinalTime(ts, TS_EXACTFINALTIME_MATCHSTEP));
    PetscCall(TSSetFromOptions(ts));
  } else {
#if PETSC_VERSION_LT(3, 21, 0)
    PetscCall(DMPlexSetSNESLocalFEM(dm, NULL, NULL, NULL));
#else
    PetscCall(DMPlexSetSNESLocalFEM(dm, PETSC_FALSE, NULL));
#endif
    PetscCall(SNESCreate(PETSC_COMM_WORLD, &snes));
    PetscCall(SNESSetDM(snes, dm));
    PetscCall(SNESSetFromOptions(snes));
  }
  if (probing) {
    if (ts) PetscCall(TSSetUp(ts));
    else PetscCall(SNESSetUp(snes));
    PetscCall(probe(dm, snes, ts));
  } else {
    PetscCall(DMCreateGlobalVector(dm, &u));
    PetscCall(PetscObjectSetName((PetscObject)u, "solution"));
    PetscCall(initialise(dm, u));
    if (ts) PetscCall(TSSolve(ts, u));
    else PetscCall(SNESSolve(snes, NULL, u));
    PetscCall(measure(dm, ds, u));
    PetscCall(VecViewFromOptions(u, NULL, "-solution_view"));
    PetscCall(VecDestroy(&u));
  }
  PetscCall(SNESDestroy(&snes));
  PetscCall(TSDestroy(&ts));
  PetscCall(DMDestroy(&dm));
  PetscCall(PetscFinalize());
  return 0;
}
