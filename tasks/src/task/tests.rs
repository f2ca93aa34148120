//! Tasks on images in folders and on tables: they learn, repeat and resume.

use super::{ImageTask, TabularTask, Task};
use crate::config::{
    Augmentation, DataSource, ImageConfig, ImageModel, Objective, OnBadRecord, TabularConfig,
    TaskConfig,
};
use crate::data::{ShardKind, Shards, png_of};
use crate::tests::assert_has;
use crate::{BurnTrainer, DeviceChoice, build, layout, parameters, take_steps};
use murmurate_protocol::{Blocks, Participants, PeerId, Run};
use murmurate_strategies::Trainer;
use murmurate_strategies::inner::InnerKind;
use murmurate_strategies::state::MemoryState;
use std::fmt::Write;
use std::fs;
use std::path::Path;

const SIDE: u32 = 12;

/// 90 images of three classes: red, green or blue stripes in noise. As grey images they are all alike.
fn striped(dir: &Path) {
    let mut noise = 1_u32;
    for class in 0..3_usize {
        let folder = dir.join(["blue", "green", "red"][class]);
        fs::create_dir(&folder).unwrap();
        for number in 0..30 {
            let pixels = (0..SIDE * SIDE).flat_map(|at| {
                noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let mut rgb = [(noise >> 26) as u8; 3];
                if (at % SIDE + number) % 4 < 2 {
                    rgb[2 - class] += 120;
                }
                rgb
            });
            let png = png_of([SIDE, SIDE, 3], &pixels.collect::<Vec<_>>());
            fs::write(folder.join(format!("{number}.png")), png).unwrap();
        }
    }
}

fn images(dir: &Path, model: ImageModel) -> ImageConfig {
    ImageConfig {
        data: DataSource::Path(dir.into()),
        held_out: Some(0.2),
        model,
        hidden: 16,
        batch: 12,
        width: (model == ImageModel::ResNet18).then_some(4),
        ..ImageConfig::default()
    }
}

fn trainer(task: &TaskConfig, inner: &InnerKind) -> Box<dyn Trainer> {
    build(task, inner, &DeviceChoice::Flex, 5, &Shards::whole()).unwrap()
}

fn bits(trainer: &mut dyn Trainer) -> Vec<u32> {
    parameters(trainer).into_iter().map(f32::to_bits).collect()
}

#[test]
fn all_classifiers_learn_colours() {
    let dir = tempfile::tempdir().unwrap();
    striped(dir.path());
    let cases = [
        (ImageModel::Mlp, 40),
        (ImageModel::Cnn, 40),
        (ImageModel::ResNet18, 60),
    ];
    for (model, steps) in cases {
        let task = TaskConfig::ImageClassifier(images(dir.path(), model));
        let mut trainer = trainer(&task, &InnerKind::adam_w(5e-3));
        assert_eq!(*trainer.layout(), layout(&task).unwrap());
        let fresh = trainer.evaluate().unwrap();
        assert_eq!(fresh.samples, 18);
        assert!((fresh.loss - 3.0_f64.ln()).abs() < 1e-3, "{fresh:?}");
        take_steps(trainer.as_mut(), steps).unwrap();
        let trained = trainer.evaluate().unwrap();
        assert!(trained.accuracy.unwrap() > 0.9, "{model:?} {trained:?}");
    }
}

#[test]
fn the_gradients_of_a_residual_network_are_those_of_one_tape() {
    let dir = tempfile::tempdir().unwrap();
    striped(dir.path());
    let task = TaskConfig::ImageClassifier(images(dir.path(), ImageModel::ResNet18));
    let sgd = InnerKind::sgd(0.5);
    let (mut by_hand, mut by_step) = (trainer(&task, &sgd), trainer(&task, &sgd));
    for trainer in [&mut by_hand, &mut by_step] {
        take_steps(trainer.as_mut(), 3).unwrap();
    }
    let mut expected = parameters(by_hand.as_mut());
    let mut order = Vec::new();
    by_hand
        .gradients(&mut |offset, gradient| {
            order.push(offset);
            for (x, g) in expected[offset..].iter_mut().zip(gradient) {
                *x -= 0.5 * *g;
            }
        })
        .unwrap();
    take_steps(by_step.as_mut(), 1).unwrap();
    assert_eq!(parameters(by_step.as_mut()), expected);
    let tensors = by_hand.layout().tensors();
    assert_eq!(order.len(), tensors.len());
    let first = tensors.iter().find(|spec| spec.offset as usize == order[0]);
    assert_eq!(first.unwrap().name, "fc.weight");
    assert!(order.iter().position(|&offset| offset == 0) > Some(5));
}

/// A trainer whose images stay in their files.
fn from_files(config: &ImageConfig, shards: &Shards, in_memory: usize) -> BurnTrainer<ImageTask> {
    let task = ImageTask::within(in_memory, config, 5, shards).unwrap();
    BurnTrainer::new(task, &InnerKind::adam_w(1e-3), &DeviceChoice::Flex, 5).unwrap()
}

fn deal(trainer: &mut dyn Trainer, others: &[u8]) {
    let peer = |number: &u8| PeerId::from_bytes([*number; 32]);
    trainer.deal(&Participants::new(peer(&9), others.iter().map(peer)));
}

#[test]
fn where_images_are_kept_changes_no_bit_not_even_when_they_are_dealt_again() {
    let dir = tempfile::tempdir().unwrap();
    striped(dir.path());
    let config = images(dir.path(), ImageModel::Mlp);
    let trained = |in_memory| {
        let mut trainer = from_files(&config, &Shards::default(), in_memory);
        // Passes of six batches, dealt again within one.
        take_steps(&mut trainer, 8).unwrap();
        deal(&mut trainer, &[1, 2]);
        take_steps(&mut trainer, 5).unwrap();
        let found = trainer.evaluate().unwrap();
        (bits(&mut trainer), found)
    };
    assert_eq!(trained(usize::MAX), trained(0));
}

#[test]
fn a_trainer_that_decodes_ahead_resumes_to_the_bit() {
    let dir = tempfile::tempdir().unwrap();
    striped(dir.path());
    let config = ImageConfig {
        augmentation: Augmentation::Shift2,
        ..images(dir.path(), ImageModel::Mlp)
    };
    let new = || from_files(&config, &Shards::whole(), 0);
    let mut through = new();
    take_steps(&mut through, 9).unwrap();
    let (mut first, mut state) = (new(), MemoryState::default());
    take_steps(&mut first, 4).unwrap();
    first.save(&mut state).unwrap();
    let saved = parameters(&mut first);
    let mut second = new();
    second.load(&state).unwrap();
    second.visit(0..saved.len(), &mut |offset, values| {
        values.copy_from_slice(&saved[offset..offset + values.len()]);
    });
    take_steps(&mut second, 5).unwrap();
    assert_eq!(bits(&mut through), bits(&mut second));
}

#[test]
fn an_image_that_is_torn_later_stops_training_with_its_name() {
    let dir = tempfile::tempdir().unwrap();
    striped(dir.path());
    let config = images(dir.path(), ImageModel::Mlp);
    let mut trainer = from_files(&config, &Shards::whole(), 0);
    for entry in fs::read_dir(dir.path().join("red")).unwrap() {
        fs::write(entry.unwrap().path(), "torn").unwrap();
    }
    let error = take_steps(&mut trainer, 6).unwrap_err().to_string();
    assert!(error.contains("red/") && error.contains(".png"), "{error}");
}

#[test]
fn an_image_that_cannot_be_read_ends_one_daemon_once_its_block_is_done() {
    let dir = tempfile::tempdir().unwrap();
    striped(dir.path());
    let config = images(dir.path(), ImageModel::Mlp);
    let told = |first| Blocks {
        runs: vec![Run::new(first, 80)],
        done: Some(0),
    };
    // An epoch has 72 images, one a block, and a batch 12.
    let epoch = || {
        let (mut trainer, mut first) = (from_files(&config, &Shards::default(), 0), 0);
        for _ in 0..8 {
            trainer.train_blocks(&told(first));
            match take_steps(&mut trainer, 1) {
                Ok(_) => first += trainer.finished_blocks(),
                Err(error) => return Some((error.to_string(), first)),
            }
        }
        None
    };
    // One that is held out is met by no training.
    let tear = |number| {
        let file = dir.path().join(format!("red/{number}.png"));
        let image = fs::read(&file).unwrap();
        fs::write(&file, "torn").unwrap();
        let met = epoch();
        if met.is_none() {
            fs::write(&file, image).unwrap();
        }
        met
    };
    let (error, mut first) = (0..30).find_map(tear).unwrap();
    assert_has(&error, "red/");
    assert_has(&error, "on_bad_record");
    // The next one to which blocks are dealt does not meet it before the epoch ends.
    let mut next = from_files(&config, &Shards::default(), 0);
    while first + 12 <= 72 {
        next.train_blocks(&told(first));
        take_steps(&mut next, 1).unwrap();
        first += 12;
    }
}

#[test]
fn images_that_cannot_be_read_are_left_out_of_their_batches() {
    let dir = tempfile::tempdir().unwrap();
    striped(dir.path());
    for entry in fs::read_dir(dir.path().join("red")).unwrap().take(9) {
        fs::write(entry.unwrap().path(), "torn").unwrap();
    }
    let config = ImageConfig {
        on_bad_record: OnBadRecord::Skip,
        size: Some([SIDE, SIDE]),
        channels: Some(3),
        ..images(dir.path(), ImageModel::Mlp)
    };
    let trained = |in_memory| {
        let mut trainer = from_files(&config, &Shards::whole(), in_memory);
        take_steps(&mut trainer, 12).unwrap();
        let found = trainer.evaluate().unwrap();
        let skipped = trainer.data_reports()[0].skipped();
        (bits(&mut trainer), found.samples, skipped)
    };
    let (parameters, samples, skipped) = trained(0);
    assert_eq!(skipped, 9);
    assert!(samples < 18 || skipped == 9, "{samples}");
    assert_eq!((parameters, samples, skipped), trained(usize::MAX));
}

#[test]
fn images_without_contrast_are_told() {
    let dir = tempfile::tempdir().unwrap();
    for class in ["a", "b"] {
        fs::create_dir(dir.path().join(class)).unwrap();
        for value in 0..5 {
            let png = png_of([SIDE, SIDE, 1], &[value; (SIDE * SIDE) as usize]);
            fs::write(dir.path().join(format!("{class}/{value}.png")), png).unwrap();
        }
    }
    let trainer = from_files(&images(dir.path(), ImageModel::Mlp), &Shards::whole(), 0);
    let told = trainer.data_reports()[0].take_untold();
    assert!(told[0].contains("hardly any contrast"), "{told:?}");
    assert!(told[0].contains("from 0 to 4 of 255"), "{told:?}");
    fs::remove_dir_all(dir.path().join("a")).unwrap();
    fs::remove_dir_all(dir.path().join("b")).unwrap();
    striped(dir.path());
    let trainer = from_files(&images(dir.path(), ImageModel::Mlp), &Shards::whole(), 0);
    assert!(trainer.data_reports()[0].take_untold().is_empty());
}

/// 400 rows: `y` is 3 a - 2 b, and `kind` says whether it is above zero or the shape is round.
fn table(dir: &Path) -> DataSource {
    let mut text = "a,b,shape,y,kind\n".to_owned();
    for row in 0..400_u32 {
        let value = |by: u32| f64::from(row * by % 101) / 50.0 - 1.0;
        let (a, b) = (value(37), value(59));
        let shape = ["round", "flat", ""][row as usize % 3];
        let y = 3.0 * a - 2.0 * b;
        let kind = if y > 0.0 || shape == "round" {
            "in"
        } else {
            "out"
        };
        let b = if row % 50 == 7 {
            String::new()
        } else {
            b.to_string()
        };
        writeln!(text, "{a},{b},{shape},{y},{kind}").unwrap();
    }
    let file = dir.join("table.csv");
    fs::write(&file, text).unwrap();
    DataSource::Path(file)
}

fn tabular(data: DataSource, target: &str, objective: Objective) -> TabularConfig {
    let other = if target == "y" { "kind" } else { "y" };
    TabularConfig {
        categories: vec!["shape".to_owned()],
        ignore: vec![other.to_owned()],
        hidden: 32,
        ..TabularConfig::of(data, target.to_owned(), objective)
    }
}

#[test]
fn tables_are_learned_and_repeat_to_the_bit() {
    let dir = tempfile::tempdir().unwrap();
    let data = table(dir.path());
    let class = tabular(data.clone(), "kind", Objective::Classification);
    let task = TaskConfig::Tabular(class);
    let kind = InnerKind::adam_w(5e-3);
    let (mut a, mut b) = (trainer(&task, &kind), trainer(&task, &kind));
    assert_eq!(*a.layout(), layout(&task).unwrap());
    assert_eq!(a.layout().tensors()[0].shape, [2 + 2 + 16, 32]);
    let fresh = a.evaluate().unwrap();
    assert!((fresh.loss - 2.0_f64.ln()).abs() < 1e-3, "{fresh:?}");
    for trainer in [&mut a, &mut b] {
        take_steps(trainer.as_mut(), 150).unwrap();
    }
    assert_eq!(bits(a.as_mut()), bits(b.as_mut()));
    let trained = a.evaluate().unwrap();
    assert_eq!(trained.samples, 40);
    assert!(trained.accuracy.unwrap() > 0.9, "{trained:?}");

    let mut numbers = tabular(data, "y", Objective::Regression);
    numbers.scale.insert("y".to_owned(), [0.0, 2.0]);
    for layers in [0, 2] {
        numbers.layers = layers;
        let mut trainer = trainer(&TaskConfig::Tabular(numbers.clone()), &kind);
        let fresh = trainer.evaluate().unwrap();
        assert_eq!(fresh.accuracy, None);
        take_steps(trainer.as_mut(), 400).unwrap();
        let trained = trainer.evaluate().unwrap();
        assert!(trained.loss < 0.15 * fresh.loss, "{fresh:?} {trained:?}");
    }
}

#[test]
fn shards_of_rows_cover_the_table_and_regression_has_no_classes() {
    let dir = tempfile::tempdir().unwrap();
    let data = table(dir.path());
    let config = tabular(data.clone(), "kind", Objective::Classification);
    // A batch has at most all rows of a shard.
    let rows = |index| {
        let kind = ShardKind::Dirichlet { alpha: 1.0 };
        let (of, seed) = (3, 4);
        let shards = Shards {
            kind,
            index,
            of,
            seed,
            ..Shards::whole()
        };
        let config = TabularConfig {
            batch: 65_536,
            ..config.clone()
        };
        TabularTask::new(&config, 5, &shards).unwrap().samples()
    };
    let counts = [0, 1, 2].map(rows);
    assert_eq!(counts.iter().sum::<u64>(), 360, "{counts:?}");
    assert!(counts[0] != counts[1], "{counts:?}");
    let numbers = TaskConfig::Tabular(tabular(data, "y", Objective::Regression));
    let shards = Shards {
        kind: ShardKind::ByLabel,
        of: 2,
        ..Shards::whole()
    };
    let error = build(
        &numbers,
        &InnerKind::sgd(0.1),
        &DeviceChoice::Flex,
        5,
        &shards,
    );
    let error = error.err().unwrap().to_string();
    assert!(error.contains("needs classes"), "{error}");
}
