// $LANES numbers of type $T, the masks of comparisons, and numbers in memory.
typedef $T $V __attribute__((vector_size($BYTES)));
typedef $INTEGER $M __attribute__((vector_size($BYTES)));
typedef $T unaligned_$V __attribute__((vector_size($BYTES), aligned($SIZE), may_alias));

INLINE $V splat_$V($T value)
{
    return ($V){$EACH{value}};
}

INLINE $M splat_$M(int value)
{
    const $INTEGER all = value ? -1 : 0;
    return ($M){$EACH{all}};
}

INLINE $V load_$V(const $T *from)
{
    return *(const unaligned_$V *)from;
}

INLINE void store_$V($V value, $T *to)
{
    *(unaligned_$V *)to = value;
}

// Reads the first elements; the others are 0.
INLINE $V load_some_$V(const $T *from, size_t count)
{
    $V value = splat_$V(0);
    for (size_t i = 0; i < count; ++i) {
        value[i] = from[i];
    }
    return value;
}

INLINE void store_some_$V($V value, $T *to, size_t count)
{
    for (size_t i = 0; i < count; ++i) {
        to[i] = value[i];
    }
}

// a · b + c, rounded once where the processor can at no cost.
INLINE $V fma_$V($V a, $V b, $V c)
{
#if !defined(__FMA__) && !defined(__aarch64__)
    return a * b + c;
#elif __has_builtin(__builtin_elementwise_fma)
    return __builtin_elementwise_fma(a, b, c);
$BUILTIN
#else
    return ($V){$EACH{__builtin_fma$F(a[$I], b[$I], c[$I])}};
#endif
}

INLINE $V sqrt_$V($V a)
{
#if __has_builtin(__builtin_elementwise_sqrt)
    return __builtin_elementwise_sqrt(a);
#else
    return ($V){$EACH{__builtin_sqrt$F(a[$I])}};
#endif
}

INLINE $V fabs_$V($V a)
{
    return ($V)(($M)a & ~($M)splat_$V(-0.0$F));
}

// a where the mask is true, else b.
INLINE $V select_$V($M mask, $V a, $V b)
{
    return ($V)((mask & ($M)a) | (~mask & ($M)b));
}

// 1 where a lane's mask has a bit, else 0.
INLINE $V flags_$V(const uint32_t *masks, uint32_t bit)
{
    return ($V){$EACH{($T)((masks[$I] >> bit) & 1)}};
}

INLINE $V gather_$V(const $T *source, const uint32_t *map, size_t scale, size_t offset)
{
    return ($V){$EACH{source[map[$I] * scale + offset]}};
}

// The same; the index UINT32_MAX reads 0.
INLINE $V gather_masked_$V(const $T *source, const uint32_t *map, size_t scale, size_t offset)
{
    return ($V){$EACH{map[$I] == UINT32_MAX ? 0 : source[map[$I] * scale + offset]}};
}

// Adds the lanes below `active` to `target[map[lane] * scale + offset]`, one after another.
INLINE void scatter_$V(
    $V value, $T *target, const uint32_t *map, size_t scale, size_t offset, size_t active)
{
    if (active == $LANES) {
        $DO{target[map[$I] * scale + offset] += value[$I];}
    } else {
        for (size_t lane = 0; lane < active; ++lane) {
            target[map[lane] * scale + offset] += value[lane];
        }
    }
}

// The same; the index UINT32_MAX writes nothing.
INLINE void scatter_masked_$V(
    $V value, $T *target, const uint32_t *map, size_t scale, size_t offset, size_t active)
{
    for (size_t lane = 0; lane < active; ++lane) {
        if (map[lane] != UINT32_MAX) {
            target[map[lane] * scale + offset] += value[lane];
        }
    }
}

// Asks for the cache lines of `source[map[lane] * scale]`.
INLINE void prefetch_indexed_$V(const $T *source, const uint32_t *map, size_t scale)
{
    for (size_t lane = 0; lane < $LANES; ++lane) {
        prefetch_0((uintptr_t)source + sizeof *source * scale * map[lane]);
    }
}

// Rows to columns.
INLINE void transpose_$V($V *rows)
{
$TRANSPOSE
}
