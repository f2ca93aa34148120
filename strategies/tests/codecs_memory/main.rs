//! Codecs allocate nothing in steady state: from the second slice on, encoding into a buffer that has been
//! used before and decoding take no memory of the heap.

#[path = "../codecs/slice.rs"]
mod slice;

use murmurate_strategies::compress::CODECS;
use slice::Slice;

#[test]
fn the_second_slice_allocates_nothing() {
    let len = 100_003;
    let values: Vec<f32> = (0..len)
        .map(|i: u32| (i.wrapping_mul(2_654_435_761) >> 8) as f32 / 1e7 - 0.8)
        .collect();
    let plain = CODECS.iter().map(|spec| slice::kind(spec, 0.01));
    for kind in plain.chain(slice::sparse()) {
        let mut codec = kind.build();
        let (mut out, mut acc) = (Vec::new(), vec![0.0; values.len()]);
        let mut residual = vec![0.0; values.len()];
        let mut slice = Slice::new(&*codec, values.len());
        let mut exchange = |seed| {
            let mut context = slice.context(seed);
            // The same work each time: what a sparsifier keeps depends on the residual.
            residual.fill(0.0);
            out.clear();
            codec.encode(&values, &mut context, &mut out);
            let decoded = codec.decode_add(&out, 0.5, &mut acc);
            assert!(decoded.is_ok(), "{kind:?}: {decoded:?}");
            out.clear();
            codec.encode_residual(&values, &mut residual, &mut context, &mut out);
        };
        exchange(1);
        let used = allocation_counter::measure(|| exchange(1));
        assert_eq!(
            used.count_total, 0,
            "{kind:?} allocated {} bytes",
            used.bytes_total
        );
    }
}
