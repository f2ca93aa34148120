//! The next forward pass begins while fragments are still exchanged: which parameters its layers compute
//! with, and that nothing else changes.

use crate::common::store::{Still, Store};
use crate::common::{Forwards, Make, Swarm, bare_trainer, ended_alike, orders, peer};
use murmurate_protocol::{Done, FragmentId, Order, Part, PeerId, Round, RunId, StoreId, Unneeded};
use murmurate_strategies::executor::{Executor, MixLane, Parts};
use murmurate_strategies::grid::Strategy;
use murmurate_strategies::inner::InnerKind;

use murmurate_strategies::toy::ToyTask;
use murmurate_strategies::{Gate, Layout, StepControl, TrainError, TrainReport, Trainer, Visit};

use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

const PEERS: usize = 4;
const ROUNDS: u64 = 12;

fn noisy() -> Make {
    let task = ToyTask::Quadratic {
        dim: 203,
        heterogeneity: 1.0,
        noise: 0.3,
        inner: InnerKind::sgd(0.1),
    };
    Box::new(move |index| task.build(index, PEERS, 11))
}

fn text(layers: &str) -> String {
    format!(
        "preset = \"bsp\"\n[architecture]\ncontribution = \"gradient\"\n\
         [overlap]\nfragments = 7\nlayers = \"{layers}\"\n"
    )
}

fn run(layers: &str) -> Swarm {
    let mut swarm = Swarm::new(&text(layers), PEERS, 0, noisy());
    swarm.run(ROUNDS);
    swarm
}

fn forwards(swarm: &Swarm, index: usize) -> Forwards {
    *swarm.members[&peer(index)].forwards.lock().unwrap()
}

/// The batches are drawn ahead of their round, and yet all rounds have the bits that they would have.
#[test]
fn a_forward_pass_that_begins_early_changes_no_bit() {
    let together = run("together");
    for layers in ["into-forward", "decoupled"] {
        let swarm = run(layers);
        for index in 0..PEERS {
            let anchors = |swarm: &Swarm| swarm.members[&peer(index)].anchors.clone();
            let (found, expected) = (anchors(&swarm), anchors(&together));
            for round in (0..ROUNDS).map(Round) {
                assert_eq!(found[&round], expected[&round], "{layers} {round:?}");
            }
            let forwards = forwards(&swarm, index);
            assert!(forwards.computed >= ROUNDS - 1, "{layers}: {forwards:?}");
            assert_eq!(forwards.dropped, 0, "{layers}");
        }
    }
}

/// Three members' forward passes wait for the fragments of a slow one, which dies in its backward pass, with
/// more or fewer of them sent. The passes go on with what the others decide.
#[test]
fn a_death_while_forward_passes_wait_leaves_the_others_with_the_same_bits() {
    for layers in ["into-forward", "decoupled"] {
        let mut waited = 0;
        for nth in 0..12 {
            let mut swarm = Swarm::new(&text(layers), PEERS, nth + 1, noisy());
            let slow = peer(nth as usize % PEERS);
            swarm.slow = Some(slow);
            swarm.run(2);
            let stop = swarm.now + Duration::from_millis(1100 + 150 * nth);
            swarm.run_until(|swarm| swarm.now >= stop);
            let others: Vec<PeerId> = (0..PEERS).map(peer).filter(|p| *p != slow).collect();
            waited += others
                .iter()
                .filter(|p| swarm.waits_in_forward(**p))
                .count();
            swarm.kill(slow);
            swarm.run(ROUNDS);
            assert!(others.iter().eq(swarm.members.keys()), "{layers} {nth}");
            ended_alike(&swarm, ROUNDS - 1, &format!("{layers} {nth}"));
        }
        assert!(waited >= 24, "{layers}: {waited} passes waited");
    }
}

/// Tells what its forward pass has read, and computes what the parameters are.
struct Layers {
    layout: Layout,
    x: Vec<f32>,
    read: Sender<usize>,
    begun: bool,
}

impl Trainer for Layers {
    bare_trainer!(x);

    fn steps(&mut self, _: &mut dyn StepControl) -> Result<TrainReport, TrainError> {
        unreachable!("gradients are exchanged")
    }

    fn gradients(&mut self, on_ready: Visit<'_>) -> Result<TrainReport, TrainError> {
        self.begun = false;
        let mut gradient = self.x.clone();
        for tensor in self.layout.tensors().iter().rev() {
            on_ready(tensor.range().start, &mut gradient[tensor.range()]);
        }
        Ok(TrainReport {
            steps: 1,
            samples: 1,
            loss: 0.0,
        })
    }

    fn forward(&mut self, gate: &Arc<dyn Gate>) -> Result<bool, TrainError> {
        for (at, tensor) in self.layout.tensors().iter().enumerate() {
            let range = tensor.range();
            if !gate.read(range.clone(), &mut self.x[range]) {
                self.read.send(100 + at).unwrap();
                return Ok(false);
            }
            self.read.send(at).unwrap();
        }
        self.begun = true;
        Ok(true)
    }

    fn drop_forward(&mut self) {
        self.begun = false;
    }
}

fn train(round: u64, steps: u32) -> Order {
    orders::training(round, steps, steps > 0, 1)
}

/// One member that sums alone: its contribution to a fragment is the fragment's result.
fn decide(mix: &mut MixLane, store: &Store, round: u64, fragment: u16) {
    let (round, fragment) = (Round(round), FragmentId(fragment));
    let own = orders::slice(round, fragment, Part::Contribution);
    let encode = orders::encode(StoreId::Local, own);
    for order in [encode]
        .into_iter()
        .chain(orders::alone(round, fragment, own))
    {
        if let Some(Done::Failed(error)) = mix.perform(&order, store) {
            panic!("{order:?}: {error}");
        }
    }
}

/// The two lanes on two threads, as in the daemon: a layer computes as soon as its own fragment is in force,
/// with the fragment's new values, and a pass that is broken off ends.
#[test]
fn a_layer_computes_once_its_own_fragment_is_in_force() {
    let layout = Layout::new((0..4).map(|at| (format!("layer {at}"), vec![8])));
    let strategy = "preset = \"wfbp\"\n[overlap]\nlayers = \"into-forward\"\n\
                    [inner]\nlr = 0.5\nmomentum = 0.0\n";
    let strategy: Strategy = strategy.parse().unwrap();
    let plan = strategy
        .plan(RunId::from_bytes([9; 32]), &layout, 10)
        .unwrap();
    let (read, reads) = channel();
    let trainer = Layers {
        layout,
        x: vec![1.0; 32],
        read,
        begun: false,
    };
    let parts = Parts::new(&strategy, &plan, 32);
    let executor = Executor::new(Box::new(trainer), parts, Box::new(Still));
    let (mut train_lane, mut mix) = executor.split();
    let store = Store::default();
    let (orders, work) = channel::<Order>();
    let (answer, answers) = channel();
    let thread = std::thread::spawn(move || {
        for order in work {
            let done = train_lane.perform(&order, &mut |_, _| {});
            answer.send(done.unwrap()).unwrap();
        }
    });
    let begin = |mix: &mut MixLane, order: Order| {
        assert_eq!(mix.perform(&order, &store), None);
        orders.send(order).unwrap();
    };
    let trained = || match answers.recv().unwrap() {
        Done::Trained(summary) => summary.steps,
        other => panic!("{other:?}"),
    };
    begin(&mut mix, train(0, 1));
    assert_eq!(trained(), 1);
    // x = 1 and the gradient is x: the result of a step is 0.5.
    decide(&mut mix, &store, 0, 1);
    begin(&mut mix, train(1, 0));
    decide(&mut mix, &store, 0, 0);
    assert_eq!([reads.recv(), reads.recv()], [Ok(0), Ok(1)]);
    assert!(answers.try_recv().is_err() && reads.try_recv().is_err());
    decide(&mut mix, &store, 0, 3);
    decide(&mut mix, &store, 0, 2);
    assert_eq!(trained(), 0);
    assert_eq!([reads.recv(), reads.recv()], [Ok(2), Ok(3)]);
    begin(&mut mix, train(1, 1));
    assert_eq!(trained(), 1);
    (0..4).for_each(|fragment| decide(&mut mix, &store, 1, fragment));
    assert_eq!(mix.anchor(), [0.25; 32]);
    // Broken off: what is in force is the trainer's, and the rest is taken over before the next order.
    begin(&mut mix, train(2, 1));
    assert_eq!(trained(), 1);
    begin(&mut mix, train(3, 0));
    decide(&mut mix, &store, 2, 0);
    assert_eq!(reads.recv(), Ok(0));
    let broken = Order::Forget(Unneeded::Forward(Round(3)));
    assert_eq!(mix.perform(&broken, &store), None);
    assert_eq!((trained(), reads.recv()), (0, Ok(101)));
    (1..4).for_each(|fragment| decide(&mut mix, &store, 2, fragment));
    begin(&mut mix, train(3, 1));
    assert_eq!(trained(), 1);
    (0..4).for_each(|fragment| decide(&mut mix, &store, 3, fragment));
    assert_eq!(mix.anchor(), [0.0625; 32]);
    drop(orders);
    thread.join().unwrap();
}
