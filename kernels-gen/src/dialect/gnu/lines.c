// Returns the distance of nodes along the first axis of a rotated cell, and the weights in their order.
INLINE size_t stride_$LENGTH_$N_$C_$W_$V(
    const uint32_t *positions, const $T *weights, $T ordered[$W][$N])
{
    const size_t first = positions[0];
    for (size_t k = 0; k < $W; ++k) {
        for (size_t i = 0; i < $N; ++i) {
            ordered[k][i] = weights[$N * k + (first % $N == 0 ? i : $N - 1 - i)];
        }
    }
    size_t stride = 1;
    while ($N * stride < $LENGTH / $C) {
        const size_t next = positions[$C * stride];
        if (next == first + 1 || first == next + 1) {
            break;
        }
        stride *= $N;
    }
    return stride;
}

// Reads, for each lane, a cell of $N nodes a direction with $C components from `starts[lane] * $SCALE` on, and sums the
// lines along the first axis of its rotated copy with weights to `locals`.
NOINLINE void gather_lines_$LENGTH_$SCALE_$N_$C_$W_$V(
    const $T *source, const uint32_t *starts, $V *const *locals, const uint32_t *positions, const $T *weights)
{
    $T ordered[$W][$N];
    const size_t chunk = $C * stride_$LENGTH_$N_$C_$W_$V(positions, weights, ordered);
    $V cell[$LENGTH];
    columns_$LENGTH_$SCALE_$V(source, starts, cell, NULL);
    for (size_t line = 0; line < $LENGTH / $N; ++line) {
        const size_t entry = line / chunk * $N * chunk + line % chunk;
        const size_t at = positions[entry] / $N;
        for (size_t k = 0; k < $W; ++k) {
            $V sum = splat_$V(ordered[k][0]) * cell[entry];
            for (size_t i = 1; i < $N; ++i) {
                sum = fma_$V(splat_$V(ordered[k][i]), cell[entry + i * chunk], sum);
            }
            locals[k][at] = sum;
        }
    }
}

// The reverse of `gather_lines`, for the lanes below `active`: adds, lane after lane, or stores.
INLINE void lines_$LENGTH_$SCALE_$N_$C_$W_$V(
    $T *target, const uint32_t *starts, size_t active, const $V *const *locals, const uint32_t *positions,
    const $T *weights, int add)
{
    $T ordered[$W][$N];
    const size_t chunk = $C * stride_$LENGTH_$N_$C_$W_$V(positions, weights, ordered);
    if ($CHUNKED) {
        // Chunks of consecutive entries are transposed before their sums.
        for (size_t block = 0; block < $LENGTH; block += $N * chunk) {
            for (size_t done = 0; done < chunk; done += $LANES) {
                const size_t count = lesser(chunk - done, $LANES);
                $V rows[$W][$LANES];
                for (size_t k = 0; k < $W; ++k) {
                    for (size_t j = 0; j < $LANES; ++j) {
                        const size_t own = lesser(j, count - 1);
                        rows[k][j] = locals[k][positions[block + done + own] / $N];
                    }
                    transpose_$V(rows[k]);
                }
                for (size_t lane = 0; lane < active; ++lane) {
                    for (size_t i = 0; i < $N; ++i) {
                        $T *const own = target + starts[lane] * (size_t)$SCALE + block + done + i * chunk;
                        $V sum = add ? load_some_$V(own, count) : splat_$V(0);
                        for (size_t k = 0; k < $W; ++k) {
                            sum = fma_$V(splat_$V(ordered[k][i]), rows[k][lane], sum);
                        }
                        store_some_$V(sum, own, count);
                    }
                }
            }
        }
        return;
    }
    $V cell[$LENGTH];
    for (size_t line = 0; line < $LENGTH / $N; ++line) {
        const size_t entry = line / chunk * $N * chunk + line % chunk;
        const size_t at = positions[entry] / $N;
        for (size_t i = 0; i < $N; ++i) {
            $V sum = splat_$V(ordered[0][i]) * locals[0][at];
            for (size_t k = 1; k < $W; ++k) {
                sum = fma_$V(splat_$V(ordered[k][i]), locals[k][at], sum);
            }
            cell[entry + i * chunk] = sum;
        }
    }
    rows_$LENGTH_$SCALE_$V(target, starts, active, cell, NULL, add);
}

NOINLINE void scatter_lines_$LENGTH_$SCALE_$N_$C_$W_add_$V(
    $T *target, const uint32_t *starts, size_t active, const $V *const *locals, const uint32_t *positions,
    const $T *weights)
{
    lines_$LENGTH_$SCALE_$N_$C_$W_$V(target, starts, active, locals, positions, weights, 1);
}

NOINLINE void scatter_lines_$LENGTH_$SCALE_$N_$C_$W_set_$V(
    $T *target, const uint32_t *starts, size_t active, const $V *const *locals, const uint32_t *positions,
    const $T *weights)
{
    lines_$LENGTH_$SCALE_$N_$C_$W_$V(target, starts, active, locals, positions, weights, 0);
}
