/* A program that computes the residual R(u) and the Jacobian J(u) of the form `$NAME` on a box, batch by batch.

   Build:  cc -O2 -ffp-contract=off -fno-math-errno -march=native driver.c -o driver -lm
   Run:    ./driver [-cells 3] [-warp] [-half TAG] [-rest TAG] [-param_NAME v,…]

   -cells N       cells in each direction; N^d squares or cubes, divided where cells are triangles or tetrahedra
   -warp          a sheared box, with cells that are no parallelepipeds
   -half TAG      the cells with x[0] < 1/2 have this tag
   -rest TAG      the other cells have this tag
   -matrices 0    without the matrices of cells
   It prints R(u)·v, v·J(u)w and v·diag(J(u)) at the polynomials of `polynomial`, the last two also by the matrices of
   cells. Sides of the box are x0, x1, y0, y1, z0, z1. Results of cells are multiplied with v cell by cell; a program
   with an assembly adds them to its vectors. */

#include "$NAME.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIM $NAME_DIM
#define WIDTH $NAME_WIDTH
#define VERTICES $NAME_VERTICES

typedef $NAME_real (*Array)[WIDTH];
typedef enum { RESIDUAL, ACTION, DIAGONAL, MATRIX } Task;
typedef enum { STATE, DIRECTION, TEST, DATA, RATE, SECOND_RATE } Kind;

/* Arrays of one batch. */
typedef struct {
  int facet[WIDTH];
  $NAME_real diameter[WIDTH];
  Array x, data[$DATA], state[$FIELDS], direction[$FIELDS], test[$FIELDS], result[$FIELDS], matrix;
} Batch;

/* The box. */
typedef struct {
  int cells, warp;
  $NAME_params params;
} Box;

/* Calls a function of a part. Returns 0 if the part has no such terms. */
static int call(int part, Task task, Batch *b, const $NAME_params *params) {
  switch (4 * part + (int)task) {
$CALLS
  default:
    (void)b;
    (void)params;
    return 0;
  }
}

static void *allocate(size_t count) {
  void *memory = calloc(count ? count : 1, sizeof($NAME_real) * WIDTH);
  if (memory) return memory;
  fprintf(stderr, "no memory for %zu numbers\n", count * WIDTH);
  exit(1);
}

static int power(int base, int exponent) {
  int product = 1;
  for (int d = 0; d < exponent; d++) product *= base;
  return product;
}

/* A polynomial of degree 1, or 2 where the element has it; row is the number of the component among those of all. */
static double polynomial(Kind kind, int row, int degree, const double x[]) {
  double value = kind == STATE || kind == DATA ? 0.5 : 0.3;
  for (int k = 0; k < DIM; k++) {
    const double a = 0.02 * ((3 * row + 5 * (int)kind + 7 * k) % 9 - 4);
    value += a * x[k] + (degree > 1 ? a * x[k] * x[(k + 1) % DIM] : 0.0);
  }
  return value;
}

/* Returns the number of cells in a square or cube. */
static int division(void) {
  return $NAME_IS_TENSOR || DIM == 1 ? 1 : DIM == 2 ? 2 : 6;
}

/* Sets the places of a cell's vertices in the grid: those of a square or cube, or of a path along its edges. */
static void find_vertices(const Box *box, int cell, int at[VERTICES][DIM]) {
  const int paths[6][3] = {{0, 1, 2}, {1, 0, 2}, {0, 2, 1}, {2, 0, 1}, {1, 2, 0}, {2, 1, 0}};
  int rest = cell / division();
  for (int d = 0; d < DIM; d++) {
    for (int v = 0; v < VERTICES; v++) at[v][d] = rest % box->cells + ($NAME_IS_TENSOR ? v >> d & 1 : 0);
    rest /= box->cells;
  }
  for (int v = 1; v < VERTICES && !$NAME_IS_TENSOR; v++) {
    for (int w = v; w < VERTICES; w++) at[w][paths[cell % division()][v - 1]]++;
  }
}

/* Sets the coordinates of a place of the grid. */
static void place_vertex(const Box *box, const int at[DIM], double to[DIM]) {
  double x[DIM], bubble = 1.0;
  for (int d = 0; d < DIM; d++) {
    x[d] = (double)at[d] / box->cells;
    bubble *= x[d] * (1.0 - x[d]);
  }
  for (int d = 0; d < DIM; d++) {
    to[d] = box->warp && DIM > 1 ? x[d] + 0.1 * x[(d + 1) % DIM] + (d + 1) * bubble : x[d];
  }
}

/* Sets the coordinates of a point of a cell: its map is that of its vertices. */
static void place(double vertices[VERTICES][DIM], const double reference[DIM], double to[DIM]) {
  for (int d = 0; d < DIM; d++) to[d] = 0.0;
  for (int v = 0; v < VERTICES; v++) {
    double weight = 1.0;
    if ($NAME_IS_TENSOR) {
      for (int d = 0; d < DIM; d++) weight *= v >> d & 1 ? reference[d] : 1.0 - reference[d];
    } else if (v > 0) {
      weight = reference[v - 1];
    } else {
      for (int d = 0; d < DIM; d++) weight -= reference[d];
    }
    for (int d = 0; d < DIM; d++) to[d] += weight * vertices[v][d];
  }
}

/* Sets the numbers of a field or data in one cell of a batch: those of a polynomial. */
static void interpolate(const WeakformCellField *field, Kind kind, int row, int cell, double vertices[VERTICES][DIM], Array to) {
  double centre[DIM] = {0.0}, x[DIM];
  for (int v = 0; v < VERTICES; v++) {
    for (int d = 0; d < DIM; d++) centre[d] += $NAME_vertex_reference[v][d] / VERTICES;
  }
  for (int i = 0; i < field->nodes; i++) {
    place(vertices, field->reference ? field->reference + i * DIM : centre, x);
    for (int c = 0; c < field->components; c++) {
      to[i * field->components + c][cell] = ($NAME_real)polynomial(kind, row + c, field->degree, x);
    }
  }
}

/* Returns the first component of a field among those of all. */
static int first_row(const WeakformCellField fields[], int field) {
  int row = 0;
  for (int f = 0; f < field; f++) row += fields[f].components;
  return row;
}

/* Sets all arguments in one cell of a batch. */
static void set(const Box *box, int number, int facet, int cell, Batch *b) {
  int at[VERTICES][DIM];
  double vertices[VERTICES][DIM], x[DIM], diameter = 0.0;
  find_vertices(box, number, at);
  for (int v = 0; v < VERTICES; v++) {
    place_vertex(box, at[v], vertices[v]);
    for (int w = 0; w < v; w++) {
      double square = 0.0;
      for (int d = 0; d < DIM; d++) square += (vertices[v][d] - vertices[w][d]) * (vertices[v][d] - vertices[w][d]);
      diameter = fmax(diameter, sqrt(square));
    }
  }
  b->facet[cell] = facet;
  b->diameter[cell] = ($NAME_real)diameter;
  for (int i = 0; i < $NAME_GEOMETRY_NODES; i++) {
    place(vertices, $NAME_geometry_reference[i], x);
    for (int d = 0; d < DIM; d++) b->x[i * DIM + d][cell] = ($NAME_real)x[d];
  }
  for (int f = 0; $NAME_fields[f].name; f++) {
    const int row = first_row($NAME_fields, f);
    interpolate(&$NAME_fields[f], STATE, row, cell, vertices, b->state[f]);
    interpolate(&$NAME_fields[f], DIRECTION, row, cell, vertices, b->direction[f]);
    interpolate(&$NAME_fields[f], TEST, row, cell, vertices, b->test[f]);
  }
  for (int f = 0; $NAME_data[f].name; f++) {
    /* The data of a time derivative is numbered like its field. */
    const int order = $NAME_data[f].order;
    const int row = order ? first_row($NAME_fields, $NAME_data[f].field) : first_row($NAME_data, f);
    interpolate(&$NAME_data[f], order == 0 ? DATA : order == 1 ? RATE : SECOND_RATE, row, cell, vertices, b->data[f]);
  }
}

/* Returns test · result of the first cells of a batch. */
static double dot(const Batch *b, int count) {
  double sum = 0.0;
  for (int f = 0; $NAME_fields[f].name; f++) {
    for (int i = 0; i < $NAME_fields[f].nodes * $NAME_fields[f].components; i++) {
      for (int cell = 0; cell < count; cell++) sum += (double)b->test[f][i][cell] * b->result[f][i][cell];
    }
  }
  return sum;
}

/* Adds test · matrix direction and test · diagonal of the first cells of a batch. */
static void multiply(const WeakformPart *part, const Batch *b, int count, double sums[2]) {
  for (const WeakformBlock *k = part->blocks; k < part->blocks + part->block_count; k++) {
    const int rows = $NAME_fields[k->test_field].components, columns = $NAME_fields[k->trial_field].components;
    for (int j = 0; j < k->columns; j++) {
      for (int i = 0; i < k->rows; i++) {
        for (int cell = 0; cell < count; cell++) {
          const double v = b->test[k->test_field][i * rows + k->test_component][cell];
          const double w = b->direction[k->trial_field][j * columns + k->trial_component][cell];
          const double entry = b->matrix[k->first + j * k->rows + i][cell];
          sums[0] += v * entry * w;
          if (k->test_field == k->trial_field && k->test_component == k->trial_component && i == j) sums[1] += v * entry;
        }
      }
    }
  }
}

/* Returns whether a facet of a cell lies on one of the sides with a flag. */
static int is_on(const Box *box, int number, int facet, const int sides[]) {
  int at[VERTICES][DIM];
  find_vertices(box, number, at);
  for (int side = 0; side < 2 * DIM; side++) {
    int all = sides[side];
    for (int v = 0; v < $NAME_FACET_VERTICES; v++) {
      if (at[$NAME_facet_vertices[facet][v]][side / 2] != side % 2 * box->cells) all = 0;
    }
    if (all) return 1;
  }
  return 0;
}

/* Adds the results of a full or partial batch: of the tasks, and of the matrices. */
static void add(const Box *box, int number, const WeakformPart *part, Batch *b, int count, int matrices, double sums[5]) {
  for (int cell = count; cell < WIDTH; cell++) {
    /* A batch that is not full repeats its last cell. */
    b->facet[cell] = b->facet[count - 1];
    b->diameter[cell] = b->diameter[count - 1];
    for (int i = 0; i < $NAME_GEOMETRY_NODES * DIM; i++) b->x[i][cell] = b->x[i][count - 1];
    for (int f = 0; $NAME_fields[f].name; f++) {
      for (int i = 0; i < $NAME_fields[f].nodes * $NAME_fields[f].components; i++) {
        b->state[f][i][cell] = b->state[f][i][count - 1];
        b->direction[f][i][cell] = b->direction[f][i][count - 1];
      }
    }
    for (int f = 0; $NAME_data[f].name; f++) {
      for (int i = 0; i < $NAME_data[f].nodes * $NAME_data[f].components; i++) b->data[f][i][cell] = b->data[f][i][count - 1];
    }
  }
  for (int task = RESIDUAL; task <= DIAGONAL; task++) {
    if (call(number, (Task)task, b, &box->params)) sums[task] += dot(b, count);
  }
  if (matrices && call(number, MATRIX, b, &box->params)) multiply(part, b, count, sums + MATRIX);
}

/* Integrates over a part. */
static void integrate(const Box *box, int number, const char *const halves[2], int matrices, Batch *b, double sums[5]) {
  const char *const names[] = {"x0", "x1", "y0", "y1", "z0", "z1"};
  const WeakformPart *part = &$NAME_parts[number];
  int sides[2 * DIM], is_own[2] = {!part->tags[0], !part->tags[0]}, count = 0;
  for (int side = 0; side < 2 * DIM; side++) sides[side] = !part->tags[0];
  for (const char *const *tag = part->tags; *tag; tag++) {
    int known = 0;
    for (int half = 0; half < 2 && !part->on_facets; half++) {
      if (halves[half] && !strcmp(*tag, halves[half])) known = is_own[half] = 1;
    }
    for (int side = 0; side < 2 * DIM && part->on_facets; side++) {
      if (!strcmp(*tag, names[side])) known = sides[side] = 1;
    }
    if (known) continue;
    fprintf(stderr, "the box has no part `%s`\n", *tag);
    exit(1);
  }
  for (int cell = 0; cell < power(box->cells, DIM) * division(); cell++) {
    if (!part->on_facets && !is_own[2 * (cell / division() % box->cells) >= box->cells]) continue;
    for (int facet = 0; facet < (part->on_facets ? $NAME_FACETS : 1); facet++) {
      if (part->on_facets && !is_on(box, cell, facet, sides)) continue;
      set(box, cell, facet, count++, b);
      if (count == WIDTH) {
        add(box, number, part, b, count, matrices, sums);
        count = 0;
      }
    }
  }
  if (count > 0) add(box, number, part, b, count, matrices, sums);
}

/* Returns the value of an option, or NULL. */
static const char *option(int argc, char **argv, const char name[]) {
  for (int i = 1; i < argc; i++) {
    if (!strcmp(argv[i], name)) return i + 1 < argc ? argv[i + 1] : "";
  }
  return NULL;
}

/* Sets the parameters that the command line names. */
static void set_parameters(int argc, char **argv, $NAME_params *params) {
  for (int i = 1; i + 1 < argc; i++) {
    char *rest = argv[i + 1];
    int first = strcmp(argv[i], "-param_t") ? -1 : 0, count = 1;
    if (strncmp(argv[i], "-param_", 7)) continue;
    for (const WeakformCellParameter *p = $NAME_parameters; p->name; p++) {
      if (!strcmp(argv[i] + 7, p->name)) {
        first = p->first;
        count = p->count;
      }
    }
    for (int n = 0; n < count && first >= 0 && *rest; n++) {
      (($NAME_real *)params)[first + n] = ($NAME_real)strtod(rest, &rest);
      if (*rest) rest++;
    }
  }
}

int main(int argc, char **argv) {
  const char *cells = option(argc, argv, "-cells"), *matrices = option(argc, argv, "-matrices");
  const char *const halves[] = {option(argc, argv, "-half"), option(argc, argv, "-rest")};
  Box box = {cells ? atoi(cells) : 3, option(argc, argv, "-warp") != NULL, $NAME_defaults};
  const int has_matrices = !matrices || atoi(matrices);
  double sums[5] = {0.0, 0.0, 0.0, 0.0, 0.0};
  Batch b;
  int entries = 0, fields = 0, data = 0;
  set_parameters(argc, argv, &box.params);
  b.x = allocate($NAME_GEOMETRY_NODES * DIM);
  for (; $NAME_fields[fields].name; fields++) {
    const size_t length = (size_t)$NAME_fields[fields].nodes * $NAME_fields[fields].components;
    b.state[fields] = allocate(length);
    b.direction[fields] = allocate(length);
    b.test[fields] = allocate(length);
    b.result[fields] = allocate(length);
  }
  for (; $NAME_data[data].name; data++) {
    b.data[data] = allocate((size_t)$NAME_data[data].nodes * $NAME_data[data].components);
  }
  for (int part = 0; $NAME_parts[part].name; part++) {
    if ($NAME_parts[part].entries > entries) entries = $NAME_parts[part].entries;
  }
  b.matrix = allocate(has_matrices ? (size_t)entries : 0);

  for (int part = 0; $NAME_parts[part].name; part++) {
    integrate(&box, part, halves, has_matrices, &b, sums);
  }
  printf("R(u)·v %.16e\n", sums[RESIDUAL]);
  printf("v·J(u)w %.16e\n", sums[ACTION]);
  printf("v·diag %.16e\n", sums[DIAGONAL]);
  if (has_matrices) printf("by matrices %.16e %.16e\n", sums[MATRIX], sums[MATRIX + 1]);

  for (int f = 0; f < fields; f++) {
    free(b.state[f]);
    free(b.direction[f]);
    free(b.test[f]);
    free(b.result[f]);
  }
  for (int f = 0; f < data; f++) free(b.data[f]);
  free(b.x);
  free(b.matrix);
  return 0;
}
