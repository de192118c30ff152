/* A program on libCEED that applies the residual R(u) and the Jacobian J(u) of the form `$NAME` on a box.

   Build:  cc -O2 driver.c -o driver -lceed -lm
   Run:    ./driver [-ceed /cpu/self/opt/blocked] [-cells 3] [-warp] [-half TAG] [-param_NAME v,…]

   -cells N       cells in each direction
   -warp          a sheared box, with cells that are no parallelepipeds
   -half TAG      the cells with x[0] < 1/2 have this tag
   It prints R(u)·v and v·J(u)w at the polynomials of `polynomial`. Sides of the box are x0, x1, y0, y1, z0, z1. */

#include "$NAME.h"
#include <ceed.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIM $NAME_DIM
#define POINTS $NAME_QUADRATURE_POINTS
#define LONGEST 32 /* nodes or points in one direction */

#define CHECK(call)                                                 \
  do {                                                              \
    const int error = (call);                                       \
    if (error) {                                                    \
      fprintf(stderr, "%s:%d: error %d\n", __FILE__, __LINE__, error); \
      exit(1);                                                      \
    }                                                               \
  } while (0)

/* Some of the cells, or the facets of some cells on one side of the box. */
typedef struct {
  CeedInt count, *cells;
  int on_facets, axis, end;
} Part;

/* The box: cells in each direction, and coordinates of its vertices. */
typedef struct {
  CeedInt cells;
  CeedVector x;
} Mesh;

typedef enum { STATE, DIRECTION, TEST, DATA, RATE, SECOND_RATE } Kind;

static CeedInt power(CeedInt base, int exponent) {
  CeedInt product = 1;
  for (int d = 0; d < exponent; d++) product *= base;
  return product;
}

/* A polynomial of degree 1, or 2 where the element has it; row is the number of the component among those of all. */
static double polynomial(Kind kind, CeedInt row, CeedInt degree, const double x[]) {
  double value = kind == STATE || kind == DATA ? 0.5 : 0.3;
  for (int k = 0; k < DIM; k++) {
    const double a = 0.02 * ((3 * row + 5 * (int)kind + 7 * k) % 9 - 4);
    value += a * x[k] + (degree > 1 ? a * x[k] * x[(k + 1) % DIM] : 0.0);
  }
  return value;
}

/* Values and derivatives of the Lagrange polynomials of a degree on [-1, 1] at some points, [point][node]. */
static void tabulate(CeedInt degree, CeedInt count, const CeedScalar points[], CeedScalar interp[], CeedScalar grad[]) {
  CeedScalar nodes[LONGEST] = {0.0};
  if (degree > 0) CHECK(CeedLobattoQuadrature(degree + 1, nodes, NULL));
  for (CeedInt q = 0; q < count; q++) {
    for (CeedInt i = 0; i <= degree; i++) {
      CeedScalar value = 1.0, slope = 0.0;
      for (CeedInt j = 0; j <= degree; j++) {
        if (j == i) continue;
        slope = (slope * (points[q] - nodes[j]) + value) / (nodes[i] - nodes[j]);
        value *= (points[q] - nodes[j]) / (nodes[i] - nodes[j]);
      }
      interp[q * (degree + 1) + i] = value;
      grad[q * (degree + 1) + i] = slope;
    }
  }
}

/* Creates the basis of a degree in cells, or that of cells at the points of their facets. */
static void create_basis(Ceed ceed, const Part *part, CeedInt degree, CeedInt components, CeedBasis *basis) {
  CeedScalar points[LONGEST], weights[LONGEST], interp[LONGEST * LONGEST], grad[LONGEST * LONGEST];
  const CeedInt nodes = degree + 1;
  CHECK(CeedGaussQuadrature(POINTS, points, weights));
  tabulate(degree, POINTS, points, interp, grad);
  if (!part->on_facets) {
    CHECK(CeedBasisCreateTensorH1(ceed, DIM, components, nodes, POINTS, interp, grad, points, weights, basis));
    return;
  }
  const CeedScalar end[1] = {part->end ? 1.0 : -1.0};
  const CeedElemTopology topologies[] = {CEED_TOPOLOGY_LINE, CEED_TOPOLOGY_QUAD, CEED_TOPOLOGY_HEX};
  const CeedInt all = power(nodes, DIM), count = power(POINTS, DIM - 1);
  CeedScalar interp_end[LONGEST], grad_end[LONGEST];
  CeedScalar *values = calloc(count * all, sizeof(*values)), *slopes = calloc(DIM * count * all, sizeof(*slopes));
  CeedScalar *places = calloc(count * DIM, sizeof(*places)), *w = calloc(count, sizeof(*w));
  tabulate(degree, 1, end, interp_end, grad_end);
  for (CeedInt q = 0; q < count; q++) {
    CeedInt rest = q, at[DIM];
    w[q] = 1.0;
    for (int d = 0; d < DIM; d++) {
      at[d] = 0;
      if (d == part->axis) {
        places[q + count * d] = end[0];
        continue;
      }
      at[d] = rest % POINTS;
      rest /= POINTS;
      w[q] *= weights[at[d]];
      places[q + count * d] = points[at[d]];
    }
    for (CeedInt i = 0; i < all; i++) {
      for (int k = -1; k < DIM; k++) {
        CeedScalar product = 1.0;
        CeedInt node = i;
        for (int d = 0; d < DIM; d++) {
          const CeedScalar *table = d == part->axis ? (d == k ? grad_end : interp_end) : (d == k ? grad : interp);
          product *= table[at[d] * nodes + node % nodes];
          node /= nodes;
        }
        if (k < 0) values[q * all + i] = product;
        else slopes[(k * count + q) * all + i] = product;
      }
    }
  }
  CHECK(CeedBasisCreateH1(ceed, topologies[DIM - 1], components, all, count, values, slopes, places, w, basis));
  free(values);
  free(slopes);
  free(places);
  free(w);
}

/* Returns the number of nodes of an element on the mesh. */
static CeedInt count_nodes(const Mesh *mesh, CeedInt degree, int continuous) {
  if (continuous) return power(mesh->cells * degree + 1, DIM);
  return power(mesh->cells, DIM) * power(degree + 1, DIM);
}

/* Returns the node of a cell by its local number; the first direction is fastest. */
static CeedInt node_of(const Mesh *mesh, CeedInt degree, int continuous, CeedInt cell, CeedInt local) {
  CeedInt node = 0, stride = 1;
  if (!continuous) return cell * power(degree + 1, DIM) + local;
  for (int d = 0; d < DIM; d++) {
    node += (cell % mesh->cells * degree + local % (degree + 1)) * stride;
    stride *= mesh->cells * degree + 1;
    cell /= mesh->cells;
    local /= degree + 1;
  }
  return node;
}

/* Returns the first entry of a field in the vector of all, or the length of the vector at the end of the table. */
static CeedSize first_entry(const Mesh *mesh, const WeakformField fields[], CeedInt index) {
  CeedSize first = 0;
  for (CeedInt f = 0; f < index && fields[f].name; f++) {
    first += (CeedSize)count_nodes(mesh, fields[f].degree, fields[f].continuous) * fields[f].components;
  }
  return first;
}

static CeedInt count_fields(const WeakformField fields[]) {
  CeedInt count = 0;
  while (fields[count].name) count++;
  return count;
}

static void create_restriction(Ceed ceed, const Mesh *mesh, const Part *part, const WeakformField fields[], CeedInt index,
                               CeedElemRestriction *restriction) {
  const WeakformField field = fields[index];
  const CeedInt nodes = power(field.degree + 1, DIM);
  const CeedInt first = (CeedInt)first_entry(mesh, fields, index);
  CeedInt *offsets = calloc(part->count * nodes, sizeof(*offsets));
  for (CeedInt e = 0; e < part->count; e++) {
    for (CeedInt i = 0; i < nodes; i++) {
      const CeedInt node = node_of(mesh, field.degree, field.continuous, part->cells[e], i);
      offsets[e * nodes + i] = first + node * field.components;
    }
  }
  CHECK(CeedElemRestrictionCreate(ceed, part->count, nodes, field.components, 1, first_entry(mesh, fields, count_fields(fields)),
                                  CEED_MEM_HOST, CEED_COPY_VALUES, offsets, restriction));
  free(offsets);
}

static const WeakformField coordinates[] = {
  {"x", DIM, 1, 1, 0, 0},
  {NULL, 0, 0, 0, 0, 0}
};

/* Returns the coordinates of a node of an element in a cell. */
static void place(const Mesh *mesh, CeedInt degree, CeedInt cell, CeedInt local, double x[]) {
  CeedScalar nodes[LONGEST] = {0.0}, interp[DIM][2], unused[2];
  const CeedScalar *vertices;
  if (degree > 0) CHECK(CeedLobattoQuadrature(degree + 1, nodes, NULL));
  for (int d = 0; d < DIM; d++) {
    tabulate(1, 1, &nodes[local % (degree + 1)], interp[d], unused);
    local /= degree + 1;
    x[d] = 0.0;
  }
  CHECK(CeedVectorGetArrayRead(mesh->x, CEED_MEM_HOST, &vertices));
  for (CeedInt v = 0; v < power(2, DIM); v++) {
    const CeedInt vertex = node_of(mesh, 1, 1, cell, v);
    double weight = 1.0;
    for (int d = 0; d < DIM; d++) weight *= interp[d][v >> d & 1];
    for (int d = 0; d < DIM; d++) x[d] += weight * vertices[vertex * DIM + d];
  }
  CHECK(CeedVectorRestoreArrayRead(mesh->x, &vertices));
}

/* Creates a vector of all fields, or all data, and interpolates the polynomials of a kind. */
static void interpolate(Ceed ceed, const Mesh *mesh, const WeakformField fields[], Kind kind, CeedVector *vector) {
  const CeedSize length = first_entry(mesh, fields, count_fields(fields));
  CeedScalar *values;
  CeedInt row = 0;
  CHECK(CeedVectorCreate(ceed, length, vector));
  CHECK(CeedVectorGetArrayWrite(*vector, CEED_MEM_HOST, &values));
  for (CeedInt f = 0; fields[f].name; f++) {
    const CeedSize first = first_entry(mesh, fields, f);
    /* The data of a time derivative is numbered like its field. */
    const CeedInt order = kind == DATA ? fields[f].order : 0;
    const Kind own = order ? (order == 1 ? RATE : SECOND_RATE) : kind;
    CeedInt number = row;
    if (order) {
      number = 0;
      for (CeedInt g = 0; g < fields[f].field; g++) number += $NAME_fields[g].components;
    }
    for (CeedInt cell = 0; cell < power(mesh->cells, DIM); cell++) {
      for (CeedInt i = 0; i < power(fields[f].degree + 1, DIM); i++) {
        const CeedInt node = node_of(mesh, fields[f].degree, fields[f].continuous, cell, i);
        double x[DIM];
        place(mesh, fields[f].degree, cell, i, x);
        for (CeedInt c = 0; c < fields[f].components; c++) {
          values[first + node * fields[f].components + c] = polynomial(own, number + c, fields[f].degree, x);
        }
      }
    }
    row += fields[f].components;
  }
  CHECK(CeedVectorRestoreArray(*vector, &values));
}

/* Computes the geometric factors of a part. */
static void create_qdata(Ceed ceed, const Mesh *mesh, const Part *part, CeedElemRestriction *restriction, CeedVector *qdata) {
  const CeedInt size = 1 + (part->on_facets ? DIM : 0) + DIM * DIM;
  const CeedInt points = power(POINTS, DIM - (part->on_facets ? 1 : 0));
  CeedElemRestriction vertices;
  CeedBasis basis;
  CeedQFunction function;
  CeedQFunctionContext context;
  CeedOperator operator;
  $NAME_facet facet = {{0.0}};
  facet.normal[part->axis] = part->end ? 1.0 : -1.0;
  create_restriction(ceed, mesh, part, coordinates, 0, &vertices);
  create_basis(ceed, part, 1, DIM, &basis);
  CHECK(CeedElemRestrictionCreateStrided(ceed, part->count, points, size, (CeedSize)part->count * points * size, CEED_STRIDES_BACKEND, restriction));
  CHECK(CeedVectorCreate(ceed, (CeedSize)part->count * points * size, qdata));
  if (part->on_facets) CHECK(CeedQFunctionCreateInterior(ceed, 1, $NAME_facet_geometry, $NAME_facet_geometry_loc, &function));
  else CHECK(CeedQFunctionCreateInterior(ceed, 1, $NAME_geometry, $NAME_geometry_loc, &function));
  CHECK(CeedQFunctionContextCreate(ceed, &context));
  CHECK(CeedQFunctionContextSetData(context, CEED_MEM_HOST, CEED_COPY_VALUES, sizeof(facet), &facet));
  CHECK(CeedQFunctionSetContext(function, context));
  CHECK(CeedQFunctionAddInput(function, "x", DIM * DIM, CEED_EVAL_GRAD));
  CHECK(CeedQFunctionAddInput(function, "weight", 1, CEED_EVAL_WEIGHT));
  CHECK(CeedQFunctionAddOutput(function, "qdata", size, CEED_EVAL_NONE));
  CHECK(CeedOperatorCreate(ceed, function, CEED_QFUNCTION_NONE, CEED_QFUNCTION_NONE, &operator));
  CHECK(CeedOperatorSetField(operator, "x", vertices, basis, CEED_VECTOR_ACTIVE));
  CHECK(CeedOperatorSetField(operator, "weight", CEED_ELEMRESTRICTION_NONE, basis, CEED_VECTOR_NONE));
  CHECK(CeedOperatorSetField(operator, "qdata", *restriction, CEED_BASIS_NONE, CEED_VECTOR_ACTIVE));
  CHECK(CeedOperatorApply(operator, mesh->x, *qdata, CEED_REQUEST_IMMEDIATE));
  CHECK(CeedOperatorDestroy(&operator));
  CHECK(CeedQFunctionContextDestroy(&context));
  CHECK(CeedQFunctionDestroy(&function));
  CHECK(CeedBasisDestroy(&basis));
  CHECK(CeedElemRestrictionDestroy(&vertices));
}

/* Sets a parameter of an operator by its registered field. */
static void set_parameter(CeedOperator operator, const char name[], double values[]) {
  CeedContextFieldLabel label;
  CHECK(CeedOperatorGetContextFieldLabel(operator, name, &label));
  if (label) CHECK(CeedOperatorSetContextDouble(operator, label, values));
}

/* Creates the operator of a QFunction over a part by the tables of its arguments. At the state u the active input is
   the direction; for a residual it is the state. */
static void create_operator(Ceed ceed, const Mesh *mesh, const Part *part, const WeakformQFunction *own, CeedVector u, CeedVector data,
                            CeedOperator *operator) {
  CeedQFunction function;
  CeedQFunctionContext context;
  CeedElemRestriction factors;
  CeedVector qdata;
  create_qdata(ceed, mesh, part, &factors, &qdata);
  CHECK(CeedQFunctionCreateInterior(ceed, 1, own->function, own->source, &function));
  CHECK(CeedQFunctionContextCreate(ceed, &context));
  CHECK(CeedQFunctionContextSetData(context, CEED_MEM_HOST, CEED_COPY_VALUES, sizeof($NAME_defaults), (void *)(size_t)&$NAME_defaults));
  CHECK($NAME_register(context));
  CHECK(CeedQFunctionSetContext(function, context));
  for (const WeakformArgument *a = own->inputs; a->name; a++) CHECK(CeedQFunctionAddInput(function, a->name, a->size, a->mode));
  for (const WeakformArgument *a = own->outputs; a->name; a++) CHECK(CeedQFunctionAddOutput(function, a->name, a->size, a->mode));
  CHECK(CeedOperatorCreate(ceed, function, CEED_QFUNCTION_NONE, CEED_QFUNCTION_NONE, operator));
  for (int outputs = 0; outputs < 2; outputs++) {
    for (const WeakformArgument *a = outputs ? own->outputs : own->inputs; a->name; a++) {
      const WeakformField *fields = a->source == WEAKFORM_DATA ? $NAME_data : a->source == WEAKFORM_COORDINATES ? coordinates : $NAME_fields;
      CeedVector vector = CEED_VECTOR_ACTIVE;
      CeedElemRestriction restriction;
      CeedBasis basis;
      if (a->source == WEAKFORM_QDATA) {
        CHECK(CeedOperatorSetField(*operator, a->name, factors, CEED_BASIS_NONE, qdata));
        continue;
      }
      if (a->source == WEAKFORM_DATA) vector = data;
      if (a->source == WEAKFORM_COORDINATES) vector = mesh->x;
      if (a->source == WEAKFORM_STATE && u) vector = u;
      create_restriction(ceed, mesh, part, fields, a->index, &restriction);
      create_basis(ceed, part, fields[a->index].degree, fields[a->index].components, &basis);
      CHECK(CeedOperatorSetField(*operator, a->name, restriction, basis, vector));
      CHECK(CeedBasisDestroy(&basis));
      CHECK(CeedElemRestrictionDestroy(&restriction));
    }
  }
  CHECK(CeedElemRestrictionDestroy(&factors));
  CHECK(CeedVectorDestroy(&qdata));
  CHECK(CeedQFunctionContextDestroy(&context));
  CHECK(CeedQFunctionDestroy(&function));
}

/* Returns the value of an option, or NULL. */
static const char *option(int argc, char **argv, const char name[]) {
  for (int i = 1; i < argc; i++) {
    if (!strcmp(argv[i], name)) return i + 1 < argc ? argv[i + 1] : "";
  }
  return NULL;
}

/* Sets the parameters that the command line names. */
static void set_parameters(CeedOperator operator, int argc, char **argv) {
  for (int i = 1; i + 1 < argc; i++) {
    double values[LONGEST * LONGEST];
    char *rest = argv[i + 1];
    if (strncmp(argv[i], "-param_", 7)) continue;
    for (int n = 0; n < LONGEST * LONGEST && *rest; n++) {
      values[n] = strtod(rest, &rest);
      if (*rest) rest++;
    }
    set_parameter(operator, argv[i] + 7, values);
  }
}

/* Returns the cells with a tag, or those at a side of the box; all for NULL. */
static Part select_part(const Mesh *mesh, int on_facets, int side, int half) {
  const CeedInt all = power(mesh->cells, DIM);
  Part part = {0, calloc(all, sizeof(CeedInt)), on_facets, side / 2, side % 2};
  for (CeedInt cell = 0; cell < all; cell++) {
    const CeedInt at = cell / power(mesh->cells, part.axis) % mesh->cells;
    const int is_at_side = part.end ? at == mesh->cells - 1 : at == 0;
    if (on_facets ? is_at_side : !half || 2 * (cell % mesh->cells) < mesh->cells) part.cells[part.count++] = cell;
  }
  return part;
}

/* Adds a QFunction's integral over its part of the mesh to a vector. */
static void add(Ceed ceed, const Mesh *mesh, const WeakformOperator *own, const WeakformQFunction *function, CeedVector u, CeedVector data,
                CeedVector in, CeedVector out, int argc, char **argv) {
  const char *const sides[] = {"x0", "x1", "y0", "y1", "z0", "z1"};
  const char *half = option(argc, argv, "-half");
  if (!function->function) return;
  for (int side = 0; side < (own->on_facets ? 2 * DIM : 1); side++) {
    int is_own = !own->tags[0], is_half = 0;
    for (const char *const *tag = own->tags; *tag; tag++) {
      int known = half && !own->on_facets && !strcmp(*tag, half);
      if (known) is_own = is_half = 1;
      for (int s = 0; s < 2 * DIM && own->on_facets; s++) {
        if (strcmp(*tag, sides[s])) continue;
        known = 1;
        if (s == side) is_own = 1;
      }
      if (known) continue;
      fprintf(stderr, "the box has no part `%s`\n", *tag);
      exit(1);
    }
    if (!is_own) continue;
    Part part = select_part(mesh, own->on_facets, side, is_half);
    CeedOperator operator;
    create_operator(ceed, mesh, &part, function, u, data, &operator);
    set_parameters(operator, argc, argv);
    CHECK(CeedOperatorApplyAdd(operator, in, out, CEED_REQUEST_IMMEDIATE));
    CHECK(CeedOperatorDestroy(&operator));
    free(part.cells);
  }
}

static double dot(CeedVector a, CeedVector b) {
  const CeedScalar *x, *y;
  CeedSize length;
  double sum = 0.0;
  CHECK(CeedVectorGetLength(a, &length));
  CHECK(CeedVectorGetArrayRead(a, CEED_MEM_HOST, &x));
  CHECK(CeedVectorGetArrayRead(b, CEED_MEM_HOST, &y));
  for (CeedSize i = 0; i < length; i++) sum += x[i] * y[i];
  CHECK(CeedVectorRestoreArrayRead(a, &x));
  CHECK(CeedVectorRestoreArrayRead(b, &y));
  return sum;
}

static void create_mesh(Ceed ceed, CeedInt cells, int warp, Mesh *mesh) {
  const CeedInt count = power(cells + 1, DIM);
  CeedScalar *values;
  mesh->cells = cells;
  CHECK(CeedVectorCreate(ceed, (CeedSize)count * DIM, &mesh->x));
  CHECK(CeedVectorGetArrayWrite(mesh->x, CEED_MEM_HOST, &values));
  for (CeedInt v = 0; v < count; v++) {
    CeedInt rest = v;
    double x[DIM];
    for (int d = 0; d < DIM; d++) {
      x[d] = (double)(rest % (cells + 1)) / cells;
      rest /= cells + 1;
    }
    double bubble = 1.0;
    for (int d = 0; d < DIM; d++) bubble *= x[d] * (1.0 - x[d]);
    for (int d = 0; d < DIM; d++) {
      const double next = x[(d + 1) % DIM];
      values[v * DIM + d] = warp && DIM > 1 ? x[d] + 0.1 * next + (d + 1) * bubble : x[d];
    }
  }
  CHECK(CeedVectorRestoreArray(mesh->x, &values));
}

int main(int argc, char **argv) {
  const char *resource = option(argc, argv, "-ceed"), *cells = option(argc, argv, "-cells");
  Ceed ceed;
  Mesh mesh;
  CeedVector u, v, w, r, data = NULL;
  CHECK(CeedInit(resource ? resource : "/cpu/self", &ceed));
  create_mesh(ceed, cells ? atoi(cells) : 3, option(argc, argv, "-warp") != NULL, &mesh);
  interpolate(ceed, &mesh, $NAME_fields, STATE, &u);
  interpolate(ceed, &mesh, $NAME_fields, DIRECTION, &w);
  interpolate(ceed, &mesh, $NAME_fields, TEST, &v);
  interpolate(ceed, &mesh, $NAME_fields, STATE, &r);
  if ($NAME_data[0].name) interpolate(ceed, &mesh, $NAME_data, DATA, &data);

  CHECK(CeedVectorSetValue(r, 0.0));
  for (const WeakformOperator *own = $NAME_operators; own->name; own++) {
    add(ceed, &mesh, own, &own->residual, NULL, data, u, r, argc, argv);
  }
  printf("R(u)·v %.16e\n", dot(r, v));
  CHECK(CeedVectorSetValue(r, 0.0));
  for (const WeakformOperator *own = $NAME_operators; own->name; own++) {
    add(ceed, &mesh, own, &own->jacobian, u, data, w, r, argc, argv);
  }
  printf("v·J(u)w %.16e\n", dot(r, v));

  if (data) CHECK(CeedVectorDestroy(&data));
  CHECK(CeedVectorDestroy(&r));
  CHECK(CeedVectorDestroy(&w));
  CHECK(CeedVectorDestroy(&v));
  CHECK(CeedVectorDestroy(&u));
  CHECK(CeedVectorDestroy(&mesh.x));
  CHECK(CeedDestroy(&ceed));
  return 0;
}
