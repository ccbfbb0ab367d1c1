/* Solves -laplace(u) = 1 with u = 0 on the border of an L-shaped region, on grids that get finer, by
 * conjugate gradients. Every array lies in luma's default pool, and every vector operation makes a
 * new array, as array libraries do. Its calls can be recorded with LUMA_TRACE (see docs/traces.md).
 */
#include <luma.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *array(size_t count, size_t size) {
    void *block = luma_alloc(count * size);
    if (block == NULL && count != 0) {
        fprintf(stderr, "sparse_cg: %s\n", luma_last_error());
        exit(1);
    }
    return block;
}

static void release(void *block) {
    if (luma_free(block) != LUMA_SUCCESS) {
        fprintf(stderr, "sparse_cg: %s\n", luma_last_error());
        exit(1);
    }
}

/* A matrix entry while the matrix is being assembled. */
typedef struct {
    int row, column;
    double value;
} entry;

/* Entries in the order in which they are found; the array doubles. */
typedef struct {
    entry *at;
    size_t count, room;
} entries;

static void add(entries *list, int row, int column, double value) {
    if (list->count == list->room) {
        size_t room = list->room == 0 ? 64 : list->room * 2;
        entry *larger = array(room, sizeof *larger);
        if (list->count != 0) {
            memcpy(larger, list->at, list->count * sizeof *larger);
        }
        release(list->at);
        list->at = larger;
        list->room = room;
    }
    list->at[list->count++] = (entry){row, column, value};
}

/* Compressed rows: row r holds the places start[r] to start[r + 1] - 1. */
typedef struct {
    int rows;
    int *start, *column;
    double *value;
} matrix;

static matrix compress(const entries *list, int rows) {
    matrix a = {rows, array((size_t)rows + 1, sizeof(int)), array(list->count, sizeof(int)),
                array(list->count, sizeof(double))};
    memset(a.start, 0, ((size_t)rows + 1) * sizeof(int));
    for (size_t i = 0; i < list->count; i++) {
        a.start[list->at[i].row + 1]++;
    }
    for (int r = 0; r < rows; r++) {
        a.start[r + 1] += a.start[r];
    }
    int *next = array((size_t)rows, sizeof(int));
    memcpy(next, a.start, (size_t)rows * sizeof(int));
    for (size_t i = 0; i < list->count; i++) {
        int place = next[list->at[i].row]++;
        a.column[place] = list->at[i].column;
        a.value[place] = list->at[i].value;
    }
    release(next);
    return a;
}

/* The vector operations: each answers a new vector of n. */
static double *times(const matrix *a, const double *x) {
    double *y = array((size_t)a->rows, sizeof(double));
    for (int r = 0; r < a->rows; r++) {
        double sum = 0;
        for (int i = a->start[r]; i < a->start[r + 1]; i++) {
            sum += a->value[i] * x[a->column[i]];
        }
        y[r] = sum;
    }
    return y;
}

static double *plus(const double *x, double factor, const double *y, int n) {
    double *sum = array((size_t)n, sizeof(double));
    for (int i = 0; i < n; i++) {
        sum[i] = x[i] + factor * y[i];
    }
    return sum;
}

static double dot(const double *x, const double *y, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++) {
        sum += x[i] * y[i];
    }
    return sum;
}

static void replace(double **old, double *new) {
    release(*old);
    *old = new;
}

/* Improves *x until the residual is small against b; answers the iterations it took. */
static int solve(const matrix *a, const double *b, double **x) {
    int n = a->rows, iterations = 0;
    double *product = times(a, *x);
    double *residual = plus(b, -1, product, n);
    release(product);
    double *direction = plus(residual, 0, residual, n);
    double square = dot(residual, residual, n), enough = 1e-16 * dot(b, b, n);
    while (square > enough && iterations < 10 * n) {
        product = times(a, direction);
        double step = square / dot(direction, product, n);
        replace(x, plus(*x, step, direction, n));
        replace(&residual, plus(residual, -step, product, n));
        release(product);
        double next = dot(residual, residual, n);
        replace(&direction, plus(residual, next / square, direction, n));
        square = next;
        iterations++;
    }
    release(direction);
    release(residual);
    return square <= enough ? iterations : -1;
}

/* Inside the L: the square without its upper right quarter. */
static int inside(int i, int j, int n) {
    return i > 0 && j > 0 && i < n && j < n && !(2 * i >= n && 2 * j >= n);
}

int main(void) {
    static const int grids[] = {24, 48, 128};
    double value = 0;
    for (size_t level = 0; level < sizeof grids / sizeof *grids; level++) {
        int n = grids[level], unknowns = 0;
        int *number = array((size_t)(n + 1) * (size_t)(n + 1), sizeof(int));
        for (int i = 0; i <= n; i++) {
            for (int j = 0; j <= n; j++) {
                number[i * (n + 1) + j] = inside(i, j, n) ? unknowns++ : -1;
            }
        }
        static const int beside[4][2] = {{-1, 0}, {1, 0}, {0, -1}, {0, 1}};
        entries list = {NULL, 0, 0};
        for (int i = 1; i < n; i++) {
            for (int j = 1; j < n; j++) {
                int row = number[i * (n + 1) + j];
                if (row < 0) {
                    continue;
                }
                add(&list, row, row, 4.0 * n * n);
                for (int k = 0; k < 4; k++) {
                    int column = number[(i + beside[k][0]) * (n + 1) + j + beside[k][1]];
                    if (column >= 0) {
                        add(&list, row, column, -1.0 * n * n);
                    }
                }
            }
        }
        matrix a = compress(&list, unknowns);
        release(list.at);

        double *b = array((size_t)unknowns, sizeof(double));
        double *x = array((size_t)unknowns, sizeof(double));
        for (int i = 0; i < unknowns; i++) {
            b[i] = 1;
            x[i] = value;
        }
        int iterations = solve(&a, b, &x);
        if (iterations < 0) {
            fprintf(stderr, "sparse_cg: no convergence on the grid of %d\n", n);
            return 1;
        }
        value = x[number[(n / 4) * (n + 1) + n / 4]];
        printf("grid %3d: %5d unknowns, %3d iterations, u(1/4, 1/4) = %.5f\n", n, unknowns, iterations,
               value);
        release(x);
        release(b);
        release(a.value);
        release(a.column);
        release(a.start);
        release(number);
    }
    return 0;
}
