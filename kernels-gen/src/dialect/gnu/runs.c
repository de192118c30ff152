// Reads, for each lane, $LENGTH consecutive elements from `starts[lane] * $SCALE` on.
INLINE void columns_$LENGTH_$SCALE_$V(
    const $T *source, const uint32_t *starts, $V *local, const uint32_t *positions)
{
    const $T *const from[$LANES] = {$EACH{source + starts[$I] * (size_t)$SCALE}};
    for (size_t done = 0; done + $LANES <= $LENGTH; done += $LANES) {
        $V rows[$LANES] = {$EACH{load_$V(from[$I] + done)}};
        transpose_$V(rows);
        $DO{local[positions ? positions[done + $I] : done + $I] = rows[$I];}
    }
    $REMAINDER{{
        $V rows[$LANES] = {$EACH{load_some_$V(from[$I] + $WHOLE, $REST)}};
        transpose_$V(rows);
        for (size_t i = 0; i < $REST; ++i) {
            local[positions ? positions[$WHOLE + i] : $WHOLE + i] = rows[i];
        }
    }}
}

// The same, to the entries of `local` that `positions` lists.
NOINLINE void gather_run_$LENGTH_$SCALE_$V(
    const $T *source, const uint32_t *starts, $V *local, const uint32_t *positions)
{
    columns_$LENGTH_$SCALE_$V(source, starts, local, positions);
}

// The reverse of `columns`, for the lanes below `active`.
INLINE void rows_$LENGTH_$SCALE_$V(
    $T *target, const uint32_t *starts, size_t active, const $V *local, const uint32_t *positions, int add)
{
    $T *const to[$LANES] = {$EACH{target + starts[$I] * (size_t)$SCALE}};
    for (size_t done = 0; done + $LANES <= $LENGTH; done += $LANES) {
        $V rows[$LANES] = {$EACH{local[positions ? positions[done + $I] : done + $I]}};
        transpose_$V(rows);
        for (size_t lane = 0; lane < active; ++lane) {
            $T *const place = to[lane] + done;
            store_$V(add ? load_$V(place) + rows[lane] : rows[lane], place);
        }
    }
    $REMAINDER{{
        $V rows[$LANES] = {$EACH{splat_$V(0)}};
        for (size_t i = 0; i < $REST; ++i) {
            rows[i] = local[positions ? positions[$WHOLE + i] : $WHOLE + i];
        }
        transpose_$V(rows);
        for (size_t lane = 0; lane < active; ++lane) {
            $T *const place = to[lane] + $WHOLE;
            for (size_t i = 0; i < $REST; ++i) {
                place[i] = add ? place[i] + rows[lane][i] : rows[lane][i];
            }
        }
    }}
}

// The reverse of `gather_run`: adds, lane after lane.
NOINLINE void scatter_run_$LENGTH_$SCALE_add_$V(
    $T *target, const uint32_t *starts, size_t active, const $V *local, const uint32_t *positions)
{
    if (active == $LANES) {
        rows_$LENGTH_$SCALE_$V(target, starts, $LANES, local, positions, 1);
    } else {
        rows_$LENGTH_$SCALE_$V(target, starts, active, local, positions, 1);
    }
}

// The same, but stores.
NOINLINE void scatter_run_$LENGTH_$SCALE_set_$V(
    $T *target, const uint32_t *starts, size_t active, const $V *local, const uint32_t *positions)
{
    if (active == $LANES) {
        rows_$LENGTH_$SCALE_$V(target, starts, $LANES, local, positions, 0);
    } else {
        rows_$LENGTH_$SCALE_$V(target, starts, active, local, positions, 0);
    }
}
