
/// Half a vector from each place.
#[inline(always)]
unsafe fn halves_of(low: *const T, high: *const T) -> V {
    unsafe {
        let mut lanes = [0.0; LANES];
        for lane in 0..LANES / 2 {
            lanes[lane] = *low.add(lane);
            lanes[lane + LANES / 2] = *high.add(lane);
        }
        V::from_array(lanes)
    }
}

/// The reverse of `halves_of`.
#[inline(always)]
unsafe fn halves_to(value: V, low: *mut T, high: *mut T) {
    let lanes = value.to_array();
    for lane in 0..LANES / 2 {
        unsafe {
            *low.add(lane) = lanes[lane];
            *high.add(lane) = lanes[lane + LANES / 2];
        }
    }
}
