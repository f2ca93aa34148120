//! temporary
use bytes::Bytes;
use murmurate_protocol::*;
use murmurate_strategies::slices::{LocalSlices, SliceStore};
use murmurate_strategies::state::{MemoryState, StateError, StateSink, StateSource};
use murmurate_strategies::topology::TopologyKind;
use murmurate_strategies::{Layout, Proceed, StepControl, Trainer};
pub(crate) struct Strategy { kind: TopologyKind }
impl Strategy {
    pub(crate) fn from_table(t: &toml::Table) -> Result<Self, String> {
        let n = t.get("topology").and_then(|v| v.as_str()).unwrap_or("one-peer-exponential");
        Ok(Self { kind: TopologyKind::ALL.into_iter().find(|k| k.name() == n).ok_or("topology")? })
    }
    pub(crate) fn plan(&self, layout: &Layout) -> Result<Plan, String> {
        let b = BytesBound { fixed: 16, per_1024: 4096 };
        Ok(Plan { run: RunId::from_bytes([1; 32]), layout: layout.hash(), recipe: Digest::of(b"x"),
            exchange: ExchangeKind::Gossip, contribution: Contribution::Parameters, budget: StepBudget::Steps(4), rounds: 0,
            fragments: vec![FragmentPlan { len: layout.len() as u64, contribution: b, aggregate: b }],
            deadlines: DeadlinePlan::default(), state_bytes: 4 * layout.len() as u64 + 64 })
    }
    pub(crate) fn topology(&self) -> Option<Box<dyn Topology>> { Some(self.kind.build(1)) }
}
struct Count(u32);
impl StepControl for Count {
    fn before(&mut self, s: InnerStep) -> Proceed { if s.0 < u64::from(self.0) { Proceed::Go } else { Proceed::Stop } }
}
pub(crate) struct Executor { trainer: Box<dyn Trainer>, local: Vec<f32>, pinned: Option<(StateId, Bytes)> }
impl Executor {
    pub(crate) fn new(trainer: Box<dyn Trainer>, _s: &Strategy) -> Self { Self { trainer, local: vec![], pinned: None } }
    pub(crate) fn parameters(&mut self) -> Vec<f32> {
        let mut all = Vec::with_capacity(64); let n = self.trainer.layout().len();
        self.trainer.visit(0..n, &mut |_, v| all.extend_from_slice(v)); all
    }
    fn set(&mut self, x: &[f32]) { let n = x.len(); self.trainer.visit(0..n, &mut |o, v| v.copy_from_slice(&x[o..o + v.len()])); }
    fn digest(&mut self) -> Digest { let b: Vec<u8> = self.parameters().iter().flat_map(|v| v.to_le_bytes()).collect(); Digest::of(&b) }
    pub(crate) fn digests(&mut self) -> Vec<Digest> { vec![self.digest()] }
    pub(crate) fn save(&mut self, s: &mut MemoryState) -> Result<(), StateError> { let p = self.parameters(); s.tensor("x", &p)?; self.trainer.save(s) }
    pub(crate) fn load_checkpoint(&mut self, s: &MemoryState) -> Result<(), StateError> {
        let mut p = self.parameters(); s.tensor("x", &mut p)?; self.set(&p); self.trainer.load(s)
    }
    pub(crate) fn pinned(&self, s: &StateId) -> Option<Bytes> { self.pinned.as_ref().filter(|(p, _)| p == s).map(|(_, b)| b.clone()) }
    pub(crate) fn load(&mut self, _o: &Order, b: Option<Bytes>) -> Option<Done> {
        let b = b?; let x: Vec<f32> = b.chunks_exact(4).map(|c| f32::from_le_bytes([c[0], c[1], c[2], c[3]])).collect();
        self.set(&x); Some(Done::Loaded { digests: self.digests() })
    }
    pub(crate) fn perform(&mut self, order: &Order, steps: u32, slices: &LocalSlices) -> Option<Done> {
        Some(match order {
            Order::Train { .. } => { let r = self.trainer.steps(&mut Count(steps)).ok()?; self.local = self.parameters();
                Done::Trained(TrainSummary { steps: r.steps, samples: r.samples, loss: r.loss, seconds: 0.0 }) }
            Order::Encode { slice, .. } => { let b: Vec<u8> = self.local.iter().flat_map(|v| v.to_le_bytes()).collect();
                let n = b.len() as u64; slices.put(*slice, b.into()); Done::Encoded { bytes: n, digest: None } }
            Order::Combine { keep, inputs, .. } => {
                let total = keep + inputs.iter().map(|i| i.1).sum::<f64>();
                let mut acc: Vec<f64> = self.local.iter().map(|v| f64::from(*v) * keep).collect();
                for (s, w) in inputs { let b = slices.get(s).expect("there");
                    for (a, c) in acc.iter_mut().zip(b.chunks_exact(4)) { *a += w * f64::from(f32::from_le_bytes([c[0], c[1], c[2], c[3]])); } }
                self.local = acc.iter().map(|a| (a / total) as f32).collect(); Done::Combined }
            Order::Apply { .. } => { let l = self.local.clone(); self.set(&l); Done::Applied { digest: self.digest() } }
            Order::Void { .. } => Done::Applied { digest: self.digest() },
            Order::Evaluate { .. } => Done::Evaluated(self.trainer.evaluate().ok()?),
            Order::Pin { round } => { let b: Vec<u8> = self.parameters().iter().flat_map(|v| v.to_le_bytes()).collect();
                let id = StateId { round: *round, root: Digest::of(&b), bytes: b.len() as u64 }; self.pinned = Some((id, b.into())); Done::Pinned(id) }
            Order::Release { slice } => { slices.remove(slice); return None }
            _ => return None,
        })
    }
}
