/// Parts of rows go by masks.
const BY_FOURS: bool = false;

/// Rows to columns.
#[inline(always)]
fn transpose(rows: [V; LANES]) -> [V; LANES] {
    let mut columns = [[0.0; LANES]; LANES];
    for i in 0..LANES {
        let row = rows[i].to_array();
        for j in 0..LANES {
            columns[j][i] = row[j];
        }
    }
    columns.map(V::from_array)
}
