/* Trains a small neural network to tell two spirals apart, with batches of changing sizes, on the
 * host. Every tensor lies in luma's default pool, and every operation makes a new one, as eager
 * frameworks do. Its calls can be recorded with LUMA_TRACE (see docs/traces.md).
 */
#include <luma.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { LAYERS = 3, INPUTS = 2, HIDDEN = 64, LARGEST_BATCH = 256, STEPS = 60 };

typedef struct {
    int rows, columns;
    float *at;
} tensor;

static tensor make(int rows, int columns) {
    tensor t = {rows, columns, luma_alloc((size_t)rows * (size_t)columns * sizeof(float))};
    if (t.at == NULL) {
        fprintf(stderr, "train_mlp: %s\n", luma_last_error());
        exit(1);
    }
    return t;
}

static void drop(tensor t) {
    if (luma_free(t.at) != LUMA_SUCCESS) {
        fprintf(stderr, "train_mlp: %s\n", luma_last_error());
        exit(1);
    }
}

static unsigned long long seed = 20;

/* From 0 to 1, the same numbers in every run. */
static float uniform(void) {
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return (float)(seed >> 40) / (float)(1 << 24);
}

/* a * b, with either transposed on request. */
static tensor multiply(tensor a, int transpose_a, tensor b, int transpose_b) {
    int rows = transpose_a ? a.columns : a.rows, inner = transpose_a ? a.rows : a.columns;
    int columns = transpose_b ? b.rows : b.columns;
    tensor c = make(rows, columns);
    for (int i = 0; i < rows; i++) {
        for (int j = 0; j < columns; j++) {
            float sum = 0;
            for (int k = 0; k < inner; k++) {
                sum += a.at[transpose_a ? k * a.columns + i : i * a.columns + k] *
                       b.at[transpose_b ? j * b.columns + k : k * b.columns + j];
            }
            c.at[i * columns + j] = sum;
        }
    }
    return c;
}

static tensor plus_row(tensor a, tensor row) {
    tensor b = make(a.rows, a.columns);
    for (int i = 0; i < a.rows * a.columns; i++) {
        b.at[i] = a.at[i] + row.at[i % a.columns];
    }
    return b;
}

static tensor hyperbolic(tensor a) {
    tensor b = make(a.rows, a.columns);
    for (int i = 0; i < a.rows * a.columns; i++) {
        b.at[i] = tanhf(a.at[i]);
    }
    return b;
}

/* The gradient through tanh, from its result. */
static tensor hyperbolic_gradient(tensor result, tensor gradient) {
    tensor b = make(result.rows, result.columns);
    for (int i = 0; i < b.rows * b.columns; i++) {
        b.at[i] = gradient.at[i] * (1 - result.at[i] * result.at[i]);
    }
    return b;
}

static tensor sum_rows(tensor a) {
    tensor sum = make(1, a.columns);
    for (int j = 0; j < a.columns; j++) {
        sum.at[j] = 0;
        for (int i = 0; i < a.rows; i++) {
            sum.at[j] += a.at[i * a.columns + j];
        }
    }
    return sum;
}

/* A weight or bias, with Adam's two averages, made at the first step. */
typedef struct {
    tensor value, mean, square;
    int steps;
} parameter;

static parameter draw(int rows, int columns, float scale) {
    parameter p = {make(rows, columns), {0, 0, NULL}, {0, 0, NULL}, 0};
    for (int i = 0; i < rows * columns; i++) {
        p.value.at[i] = (2 * uniform() - 1) * scale;
    }
    return p;
}

static void update(parameter *p, tensor gradient) {
    int count = p->value.rows * p->value.columns;
    if (p->steps++ == 0) {
        p->mean = make(p->value.rows, p->value.columns);
        p->square = make(p->value.rows, p->value.columns);
        for (int i = 0; i < count; i++) {
            p->mean.at[i] = p->square.at[i] = 0;
        }
    }
    tensor change = make(p->value.rows, p->value.columns);
    float mean_scale = 1 / (1 - powf(0.9F, (float)p->steps));
    float square_scale = 1 / (1 - powf(0.999F, (float)p->steps));
    for (int i = 0; i < count; i++) {
        float g = gradient.at[i];
        p->mean.at[i] = 0.9F * p->mean.at[i] + 0.1F * g;
        p->square.at[i] = 0.999F * p->square.at[i] + 0.001F * g * g;
        change.at[i] = 0.01F * p->mean.at[i] * mean_scale /
                       (sqrtf(p->square.at[i] * square_scale) + 1e-8F);
    }
    for (int i = 0; i < count; i++) {
        p->value.at[i] -= change.at[i];
    }
    drop(change);
}

static void drop_parameter(parameter *p) {
    drop(p->square);
    drop(p->mean);
    drop(p->value);
}

typedef struct {
    parameter weight[LAYERS], bias[LAYERS];
} network;

/* Layer by layer; results[0] is the input. */
static void forward(network *net, tensor *results) {
    for (int l = 0; l < LAYERS; l++) {
        tensor product = multiply(results[l], 0, net->weight[l].value, 0);
        tensor shifted = plus_row(product, net->bias[l].value);
        drop(product);
        results[l + 1] = hyperbolic(shifted);
        drop(shifted);
    }
}

/* Points of two spirals, each with its side, -1 or 1. */
static tensor points(int count, tensor *sides) {
    tensor at = make(count, INPUTS);
    *sides = make(count, 1);
    for (int i = 0; i < count; i++) {
        float side = uniform() < 0.5F ? -1.0F : 1.0F, turn = 0.5F + 5 * uniform();
        at.at[2 * i] = side * turn * cosf(turn) / 3;
        at.at[2 * i + 1] = side * turn * sinf(turn) / 3;
        sides->at[i] = side;
    }
    return at;
}

/* One step; answers the mean squared error before it. */
static float train(network *net, int batch) {
    tensor sides, results[LAYERS + 1];
    results[0] = points(batch, &sides);
    forward(net, results);
    tensor upstream = make(batch, 1);
    float loss = 0;
    for (int i = 0; i < batch; i++) {
        float error = results[LAYERS].at[i] - sides.at[i];
        upstream.at[i] = 2 * error / (float)batch;
        loss += error * error / (float)batch;
    }
    for (int l = LAYERS - 1; l >= 0; l--) {
        tensor inner = hyperbolic_gradient(results[l + 1], upstream);
        drop(upstream);
        drop(results[l + 1]);
        tensor weight = multiply(results[l], 1, inner, 0);
        tensor bias = sum_rows(inner);
        upstream = multiply(inner, 0, net->weight[l].value, 1);
        drop(inner);
        update(&net->weight[l], weight);
        update(&net->bias[l], bias);
        drop(weight);
        drop(bias);
    }
    drop(upstream);
    drop(results[0]);
    drop(sides);
    return loss;
}

static float accuracy(network *net, int count) {
    tensor sides, results[LAYERS + 1];
    results[0] = points(count, &sides);
    forward(net, results);
    int right = 0;
    for (int i = 0; i < count; i++) {
        right += results[LAYERS].at[i] * sides.at[i] > 0;
    }
    for (int l = 0; l <= LAYERS; l++) {
        drop(results[l]);
    }
    drop(sides);
    return (float)right / (float)count;
}

int main(void) {
    static const int units[LAYERS + 1] = {INPUTS, HIDDEN, HIDDEN, 1};
    network net;
    for (int l = 0; l < LAYERS; l++) {
        float scale = 1 / sqrtf((float)units[l]);
        net.weight[l] = draw(units[l], units[l + 1], scale);
        net.bias[l] = draw(1, units[l + 1], scale);
    }
    for (int step = 1; step <= STEPS; step++) {
        int batch = LARGEST_BATCH / 4 + (int)(uniform() * (LARGEST_BATCH * 3 / 4));
        float loss = train(&net, batch);
        if (step % 20 == 0) {
            printf("step %d: loss %.4f\n", step, loss);
        }
    }
    float right = accuracy(&net, 4096);
    printf("accuracy %.1f %%\n", 100 * right);
    for (int l = 0; l < LAYERS; l++) {
        drop_parameter(&net.weight[l]);
        drop_parameter(&net.bias[l]);
    }
    return right > 0.95F ? 0 : 1;
}
