//! The task `causal-lm` as the configuration builds it.

use murmurate_strategies::Trainer;
use murmurate_strategies::inner::InnerKind;
use murmurate_strategies::state::MemoryState;
use murmurate_tasks::config::{
    Architecture, CausalConfig, CausalModel, DataSource, FreshModel, LanguageConfig, LoraConfig,
    OnBadRecord, TaskConfig,
};
use murmurate_tasks::data::Shards;
use murmurate_tasks::{
    DeviceChoice, Ended, Generator, Question, Sampling, Turn, build, bytes_per_token, layout,
    load_model, parameters, take_steps, write_folder,
};
use std::fs;
use std::path::{Path, PathBuf};

const FLEX: DeviceChoice = DeviceChoice::Flex;

const SENTENCE: &str = "A flock of starlings turns at dusk. No bird leads it.\n";

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(name)
}

/// A folder with a text, for one test.
fn text() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("text.txt"), SENTENCE.repeat(60)).unwrap();
    dir
}

fn of_data(dir: &Path) -> CausalConfig {
    CausalConfig {
        context: Some(16),
        batch: 4,
        ..CausalConfig::of(DataSource::Path(dir.join("text.txt")))
    }
}

fn fresh(dir: &Path, architecture: Architecture, tied: bool) -> CausalConfig {
    CausalConfig {
        model: CausalModel::Fresh(FreshModel {
            architecture,
            layers: 2,
            width: 32,
            heads: 4,
            kv_heads: 2,
            hidden: 48,
            tied,
        }),
        ..of_data(dir)
    }
}

fn of_folder(dir: &Path, model: PathBuf) -> CausalConfig {
    CausalConfig {
        model: CausalModel::Folder { model },
        ..of_data(dir)
    }
}

fn with_adapters(config: CausalConfig) -> CausalConfig {
    CausalConfig {
        lora: Some(LoraConfig {
            rank: 4,
            alpha: 8.0,
            targets: None,
        }),
        ..config
    }
}

/// One of each way to make a model.
fn all(dir: &Path) -> Vec<CausalConfig> {
    vec![
        fresh(dir, Architecture::Llama, false),
        fresh(dir, Architecture::Llama, true),
        fresh(dir, Architecture::Gpt2, true),
        of_folder(dir, fixture("gpt2")),
        with_adapters(of_folder(dir, fixture("llama"))),
    ]
}

fn trainer(config: &CausalConfig, seed: u64) -> Box<dyn Trainer> {
    let inner = InnerKind::adam_w(5e-3);
    let task = TaskConfig::CausalLm(config.clone());
    build(&task, &inner, &FLEX, seed, &Shards::whole()).unwrap()
}

fn bits(trainer: &mut dyn Trainer) -> Vec<u32> {
    parameters(trainer).into_iter().map(f32::to_bits).collect()
}

#[test]
fn a_trainer_has_the_layout_that_was_announced() {
    let dir = text();
    for config in all(dir.path()) {
        let announced = layout(&TaskConfig::CausalLm(config.clone())).unwrap();
        let found = trainer(&config, 1);
        assert_eq!(*found.layout(), announced, "{config:?}");
        let adapters = announced
            .tensors()
            .iter()
            .map(|t| t.name.contains(".lora_"));
        assert!(adapters.into_iter().all(|is| is == config.lora.is_some()));
    }
}

#[test]
fn the_same_seed_gives_the_same_bits_and_a_resumed_trainer_goes_on() {
    let dir = text();
    for config in all(dir.path()) {
        let mut first = trainer(&config, 1);
        assert_eq!(bits(first.as_mut()), bits(trainer(&config, 1).as_mut()));
        take_steps(first.as_mut(), 3).unwrap();
        let mut state = MemoryState::default();
        first.save(&mut state).unwrap();
        let mut second = trainer(&config, 1);
        let values = parameters(first.as_mut());
        second.visit(0..values.len(), &mut |offset, into| {
            into.copy_from_slice(&values[offset..offset + into.len()]);
        });
        second.load(&state).unwrap();
        take_steps(first.as_mut(), 2).unwrap();
        take_steps(second.as_mut(), 2).unwrap();
        assert_eq!(bits(first.as_mut()), bits(second.as_mut()), "{config:?}");
    }
}

#[test]
fn every_kind_learns() {
    let dir = text();
    for config in all(dir.path()) {
        let mut trainer = trainer(&config, 1);
        let before = trainer.evaluate().unwrap().loss;
        take_steps(trainer.as_mut(), 30).unwrap();
        let after = trainer.evaluate().unwrap().loss;
        assert!(after < before - 0.1, "{before} {after} {config:?}");
    }
}

#[test]
fn gradients_by_segments_are_those_of_the_whole_model() {
    let dir = text();
    for config in all(dir.path()) {
        let kind = InnerKind::sgd(1.0);
        let task = TaskConfig::CausalLm(config.clone());
        let make = || build(&task, &kind, &FLEX, 1, &Shards::whole()).unwrap();
        let (mut stepped, mut cut) = (make(), make());
        let before = parameters(cut.as_mut());
        let mut gradient = vec![f32::NAN; before.len()];
        cut.gradients(&mut |offset, values| {
            gradient[offset..offset + values.len()].copy_from_slice(values);
        })
        .unwrap();
        take_steps(stepped.as_mut(), 1).unwrap();
        let after = parameters(stepped.as_mut());
        let rows = before.iter().zip(&after).zip(&gradient);
        for ((before, after), gradient) in rows {
            assert!((before - after - gradient).abs() < 1e-5, "{config:?}");
        }
        assert!(gradient.iter().any(|value| value.abs() > 1e-3));
    }
}

/// The gradient of the first inner step.
fn gradient(config: &CausalConfig) -> Vec<f64> {
    let task = TaskConfig::CausalLm(config.clone());
    let mut trainer = build(&task, &InnerKind::sgd(1.0), &FLEX, 1, &Shards::whole()).unwrap();
    let mut gradient = vec![0.0; trainer.layout().len()];
    trainer
        .gradients(&mut |offset, values| {
            for (into, value) in gradient[offset..].iter_mut().zip(values) {
                *into = f64::from(*value);
            }
        })
        .unwrap();
    let before = parameters(trainer.as_mut());
    let mut stepped = build(&task, &InnerKind::sgd(1.0), &FLEX, 1, &Shards::whole()).unwrap();
    take_steps(stepped.as_mut(), 1).unwrap();
    let after = parameters(stepped.as_mut());
    for ((before, after), gradient) in before.iter().zip(&after).zip(&gradient) {
        let step = f64::from(before - after);
        assert!((step - gradient).abs() < 1e-5, "{step} {gradient}");
    }
    gradient
}

#[test]
fn batches_of_one_inner_step_are_averaged() {
    let dir = text();
    // One pass has four batches of four windows, in an order of its own: all of them together are
    // the same windows however they are cut.
    let config = of_folder(dir.path(), fixture("llama"));
    let windows = 40;
    let cut = |batch, accumulate| CausalConfig {
        batch,
        accumulate,
        ..config.clone()
    };
    let (one, many) = (gradient(&cut(windows, 1)), gradient(&cut(windows / 4, 4)));
    let largest = one.iter().fold(0.0_f64, |most, x| most.max(x.abs()));
    assert!(largest > 1e-3);
    for (a, b) in one.iter().zip(&many) {
        assert!((a - b).abs() < 1e-5, "{a} {b}");
    }
    let task = TaskConfig::CausalLm(cut(4, 3));
    let trainer = build(&task, &InnerKind::sgd(1.0), &FLEX, 1, &Shards::whole()).unwrap();
    assert_eq!(trainer.batch(), 12);
}

#[test]
fn activations_that_are_computed_again_give_the_same_gradient() {
    let dir = text();
    for config in all(dir.path()) {
        let kept = gradient(&config);
        let again = gradient(&CausalConfig {
            recompute: true,
            accumulate: 1,
            ..config.clone()
        });
        assert!(kept.iter().any(|x| x.abs() > 1e-3), "{config:?}");
        for (a, b) in kept.iter().zip(&again) {
            assert!((a - b).abs() < 1e-6, "{a} {b} {config:?}");
        }
    }
}

#[test]
fn a_long_gradient_is_scaled_to_its_bound_and_a_short_one_stays() {
    let dir = text();
    let config = of_folder(dir.path(), fixture("llama"));
    let norm = |values: &[f64]| values.iter().map(|x| x * x).sum::<f64>().sqrt();
    let free = gradient(&config);
    let whole = norm(&free);
    let with = |clip_norm| CausalConfig {
        clip_norm: Some(clip_norm),
        ..config.clone()
    };
    let clipped = gradient(&with(whole / 2.0));
    assert!((norm(&clipped) / whole - 0.5).abs() < 1e-4);
    for (a, b) in free.iter().zip(&clipped) {
        assert!((a / 2.0 - b).abs() < 1e-5, "{a} {b}");
    }
    assert_eq!(gradient(&with(whole * 2.0)), free);
}

#[test]
fn a_folder_that_was_written_is_the_start_to_the_bit() {
    let dir = text();
    for (index, config) in all(dir.path()).into_iter().enumerate() {
        let mut trained = trainer(&config, 1);
        take_steps(trained.as_mut(), 2).unwrap();
        let values = parameters(trained.as_mut());
        let folders = ["a", "b"].map(|name| dir.path().join(format!("{name}{index}")));
        for folder in &folders {
            write_folder(&config, trained.layout(), &values, folder).unwrap();
        }
        for entry in fs::read_dir(&folders[0]).unwrap() {
            let entry = entry.unwrap();
            let bytes = fs::read(entry.path()).unwrap();
            assert_eq!(bytes, fs::read(folders[1].join(entry.file_name())).unwrap());
            let home = dir.path().to_string_lossy().into_owned();
            assert!(!String::from_utf8_lossy(&bytes).contains(&home));
        }
        // Adapters need their model; they are read beside it, as `--init` does.
        let mut again = match config.lora {
            Some(_) => {
                let mut again = trainer(&config, 2);
                load_model(again.as_mut(), &folders[0]).unwrap();
                again
            }
            None => trainer(&of_folder(dir.path(), folders[0].clone()), 2),
        };
        assert_eq!(bits(again.as_mut()), bits(trained.as_mut()), "{config:?}");
        let scores = [again.as_mut(), trained.as_mut()].map(|t| t.evaluate().unwrap().loss);
        // The fixture's end of text is a token more for a folder than for a new model.
        assert!((scores[0] - scores[1]).abs() < 0.02, "{scores:?}");
    }
}

#[test]
fn no_other_weights_stay_beside_those_that_are_written() {
    let dir = text();
    let folder = dir.path().join("model");
    fs::create_dir(&folder).unwrap();
    for entry in fs::read_dir(fixture("llama")).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), folder.join(entry.file_name())).unwrap();
    }
    fs::write(folder.join("adapter_config.json"), "{}").unwrap();
    let config = of_folder(dir.path(), fixture("llama"));
    let mut trained = trainer(&config, 1);
    let values = parameters(trained.as_mut());
    write_folder(&config, trained.layout(), &values, &folder).unwrap();
    let names = fs::read_dir(&folder).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    // What the fixture's outputs are compared with is no weights of a model.
    let names = names.filter(|name| name != "expected.safetensors");
    let weights = names.filter(|name| name.contains("safetensors") || name.contains("adapter"));
    assert_eq!(weights.collect::<Vec<_>>(), ["model.safetensors"]);
    let adapters = with_adapters(config);
    let mut trained = trainer(&adapters, 1);
    let values = parameters(trained.as_mut());
    let error = write_folder(&adapters, trained.layout(), &values, &folder).unwrap_err();
    let error = error.to_string();
    assert!(
        error.contains("it holds model.safetensors, which would be read"),
        "{error}"
    );
}

#[test]
fn a_token_stands_for_several_bytes() {
    let dir = text();
    let of = |config| bytes_per_token(&TaskConfig::CausalLm(config)).unwrap();
    assert_eq!(of(fresh(dir.path(), Architecture::Llama, false)), Some(1.0));
    let found = of(of_folder(dir.path(), fixture("llama"))).unwrap();
    assert!(found > 1.3, "{found}");
}

#[test]
fn the_same_seed_draws_the_same_text() {
    let generator = Generator::open(&fixture("gpt2"), &FLEX).unwrap();
    let draw = |seed, temperature| {
        let sampling = Sampling {
            max_tokens: 12,
            temperature,
            top_k: 0,
            top_p: 1.0,
            stop: Vec::new(),
            seed,
        };
        let mut text = String::new();
        generator
            .generate("A flock", &sampling, &mut |piece| text.push_str(piece))
            .unwrap();
        text
    };
    assert_eq!(draw(1, 1.0), draw(1, 1.0));
    assert_ne!(draw(1, 1.0), draw(2, 1.0));
    // The most likely tokens do not depend on the seed.
    assert_eq!(draw(1, 0.0), draw(2, 0.0));
}

#[test]
fn a_text_longer_than_the_model_sees_goes_on() {
    let generator = Generator::open(&fixture("gpt2"), &FLEX).unwrap();
    let sampling = |seed| Sampling {
        max_tokens: 150,
        temperature: 1.0,
        top_k: 0,
        top_p: 1.0,
        stop: Vec::new(),
        seed,
    };
    let long = generator.generate(&"1".repeat(70), &sampling(1), &mut |_| {});
    assert_eq!(long.unwrap().unseen, 6);
    // The model has 64 positions, and ends a text with a probability of about one in 60.
    let longest = (0..20).map(|seed| {
        let found = generator.generate("A flock", &sampling(seed), &mut |_| {});
        found.unwrap().tokens
    });
    assert_eq!(longest.max(), Some(150));
    let turn = Turn {
        role: "user".to_owned(),
        content: "Who?".to_owned(),
    };
    let error = generator
        .answer(&[turn], &sampling(1), &mut |_| {})
        .unwrap_err();
    assert!(
        error.to_string().contains("there is no chat template"),
        "{error}"
    );
}

/// Questions with three answers each.
const ASKED: [(&str, [&str; 3]); 12] = [
    (
        "",
        ["a", "bird no starlings each", "nearest watches it its"],
    ),
    ("no turns its bird dusk  ", ["of", "flock leads", "bird"]),
    (
        "watches its dusk each neighbours",
        ["turns each flock a", "nearest dusk", "its leads dusk"],
    ),
    (
        "watches each bird leads dusk",
        ["it a", "at it bird", "dusk"],
    ),
    (
        "bird leads flock seven no",
        [
            "of each watches flock",
            "turns a neighbours dusk",
            "starlings flock leads seven",
        ],
    ),
    (
        "watches it bird turns seven",
        ["flock leads", "of", "flock"],
    ),
    (
        "its leads nearest turns of",
        ["it", "each turns seven", "watches seven its bird"],
    ),
    (
        "starlings bird dusk it each",
        ["leads its", "neighbours leads bird", "a its leads"],
    ),
    (
        "a watches leads seven it",
        [
            "flock it",
            "each neighbours leads nearest",
            "nearest a leads",
        ],
    ),
    (
        "a each turns it no",
        ["it at nearest", "it each", "leads watches flock"],
    ),
    (
        "turns leads bird starlings it",
        [
            "no it of",
            "starlings neighbours leads at",
            "no seven watches",
        ],
    ),
    (
        "of it each nearest starlings",
        ["bird no watches flock", "neighbours", "it at"],
    ),
];

#[test]
fn answers_are_those_that_the_evaluation_harness_chooses() {
    // Its choices with PyTorch, by the sum of log probabilities and by the sum for each character.
    let (plain, by_length) = (
        [0, 0, 2, 0, 0, 2, 0, 0, 0, 1, 0, 2],
        [2, 1, 0, 1, 2, 2, 1, 2, 0, 2, 1, 0],
    );
    let generator = Generator::open(&fixture("gpt2"), &FLEX).unwrap();
    let score = |gold: [usize; 12]| {
        let each = ASKED
            .iter()
            .zip(gold)
            .map(|((query, choices), gold)| Question {
                query: (*query).to_owned(),
                choices: choices.map(str::to_owned).to_vec(),
                gold,
            });
        let questions: Vec<Question> = each.collect();
        generator.choose(&questions, &mut |_| {}).unwrap()
    };
    assert_eq!(score(plain).right, 12);
    assert_eq!(score(by_length).right_by_length, 12);
    // The model takes 64 tokens.
    let long = Question {
        query: "A flock of starlings turns at dusk. ".repeat(40),
        choices: vec!["Yes".to_owned(), "No".to_owned()],
        gold: 0,
    };
    let found = generator.choose(&[long], &mut |_| {}).unwrap();
    assert_eq!((found.questions, found.cut), (1, 1));
}

#[test]
fn every_evaluation_asks_the_questions_of_the_task() {
    let dir = text();
    let file = dir.path().join("questions.jsonl");
    let lines = ASKED.iter().map(|(query, choices)| {
        serde_json::json!({"query": query, "choices": choices, "gold": 2}).to_string()
    });
    fs::write(&file, lines.collect::<Vec<_>>().join("\n")).unwrap();
    let config = CausalConfig {
        choices: Some(file.display().to_string()),
        ..of_folder(dir.path(), fixture("gpt2"))
    };
    let mut trainer = trainer(&config, 1);
    let scores = trainer.named_scores();
    assert_eq!(scores.last(), [].into());
    trainer.evaluate().unwrap();
    let found = |name: &str, right: f64| (name.to_owned(), right / 12.0);
    // The untrained model's choices, of which the test above has the source.
    let asked = [found("acc", 3.0), found("acc_norm", 5.0)];
    assert_eq!(scores.last(), asked.into());
    // What an evaluation leaves out is said when it begins.
    let short =
        serde_json::json!({"query": "Does a kiwi", "choices": ["fly?", "walk?"], "gold": 0});
    let long = serde_json::json!({"query": SENTENCE.repeat(9), "choices": ["a", "b"], "gold": 0});
    let many = [
        format!("{short}\n").repeat(255),
        format!("{long}\n").repeat(257),
    ]
    .concat();
    fs::write(&file, many).unwrap();
    let task = TaskConfig::CausalLm(config);
    let again = build(&task, &InnerKind::sgd(0.1), &FLEX, 1, &Shards::whole()).unwrap();
    let told = again.data_reports()[0].take_untold();
    let all = told.join("\n");
    assert!(all.contains("asks 256 of the 512 questions"), "{all}");
    assert!(
        all.contains("128 questions are longer than the 64 tokens"),
        "{all}"
    );
    fs::write(&file, "{\"query\": \"A kiwi\"}").unwrap();
    let refused = build(&task, &InnerKind::sgd(0.1), &FLEX, 1, &Shards::whole());
    let line = refused.err().unwrap().to_string();
    assert!(
        line.contains("questions.jsonl: line 1 is no question"),
        "{line}"
    );
}

#[test]
fn a_long_prompt_fills_all_positions() {
    let generator = Generator::open(&fixture("gpt2"), &FLEX).unwrap();
    let sampling = Sampling {
        max_tokens: 8,
        temperature: 0.0,
        top_k: 0,
        top_p: 1.0,
        stop: Vec::new(),
        seed: 1,
    };
    let next = |prompt: &str| {
        let found = generator.generate(prompt, &sampling, &mut |_| {});
        found.unwrap().text
    };
    // A digit is a token of its own, so the last 64 of them are what the model sees.
    let digits: String = (0..150)
        .map(|i| char::from(b'0' + (i * 7 % 10) as u8))
        .collect();
    assert_eq!(next(&digits), next(&digits[150 - 64..]));
    assert_ne!(next(&digits), next(&digits[150 - 32..]));
}

/// A folder with a tokenizer, a chat template, and conversations about birds.
fn chats() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let chat = fixture("chat");
    fs::create_dir(dir.path().join("base")).unwrap();
    for (from, to) in [
        ("tokenizer.json", "tokenizer.json"),
        ("templates/turns.jinja", "chat_template.jinja"),
    ] {
        fs::copy(chat.join(from), dir.path().join("base").join(to)).unwrap();
    }
    let line = |bird: &str, answer: &str| {
        format!(
            "{{\"messages\": [{{\"role\": \"user\", \"content\": \"Does a {bird} fly?\"}}, {{\"role\": \
             \"assistant\", \"content\": \"{answer}\"}}]}}\n"
        )
    };
    let lines = [
        line("starling", "Yes, in flocks."),
        line("kiwi", "No, it walks."),
    ];
    fs::write(dir.path().join("chats.jsonl"), lines.concat().repeat(40)).unwrap();
    dir
}

fn of_chats(dir: &Path) -> CausalConfig {
    CausalConfig {
        tokenizer: Some(dir.join("base").to_string_lossy().into_owned()),
        context: Some(64),
        held_out: 0.2,
        data: DataSource::Path(dir.join("chats.jsonl")),
        ..fresh(dir, Architecture::Gpt2, true)
    }
}

#[test]
fn an_assistant_learns_its_answers_and_nothing_else() {
    let dir = chats();
    let config = of_chats(dir.path());
    let mut trained = trainer(&config, 1);
    let before = trained.evaluate().unwrap();
    take_steps(trained.as_mut(), 60).unwrap();
    let after = trained.evaluate().unwrap();
    assert!(
        before.loss > 4.0 && after.loss < 0.5,
        "{before:?} {after:?}"
    );
    // Of two conversations in a row only the answers count, which are less than half of it.
    assert!(after.samples > 0 && after.samples < 8 * 32, "{after:?}");
    // The export answers as it was taught; its template lies in the folder.
    let values = parameters(trained.as_mut());
    let folder = dir.path().join("out");
    write_folder(&config, trained.layout(), &values, &folder).unwrap();
    let generator = Generator::open(&folder, &FLEX).unwrap();
    let sampling = Sampling {
        max_tokens: 20,
        temperature: 0.0,
        top_k: 0,
        top_p: 1.0,
        stop: vec!["<end_of_turn>".to_owned(), "\n".to_owned()],
        seed: 1,
    };
    let turn = Turn {
        role: "user".to_owned(),
        content: "Does a kiwi fly?".to_owned(),
    };
    let found = generator.answer(&[turn], &sampling, &mut |_| {}).unwrap();
    assert_eq!(
        (found.text.trim(), found.ended),
        ("No, it walks.", Ended::Stop)
    );
}

#[test]
fn a_torn_first_line_does_not_hide_conversations() {
    let dir = chats();
    let config = CausalConfig {
        on_bad_record: OnBadRecord::Skip,
        ..of_chats(dir.path())
    };
    let whole = trainer(&config, 1).evaluate().unwrap();
    let file = dir.path().join("chats.jsonl");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, format!("{{\"messages\": [\n{text}")).unwrap();
    let mut torn = trainer(&config, 1);
    assert_eq!(torn.evaluate().unwrap(), whole);
    let said = torn.data_reports()[0].take_untold().concat();
    assert!(
        said.contains("left out: ") && said.contains("line 1"),
        "{said}"
    );
}

#[test]
fn conversations_that_cannot_be_trained_are_named_by_their_line() {
    let dir = chats();
    let refused = |change: &dyn Fn(&mut String), config: &CausalConfig| {
        let file = dir.path().join("chats.jsonl");
        let whole = fs::read_to_string(&file).unwrap();
        let mut text = whole.clone();
        change(&mut text);
        fs::write(&file, text).unwrap();
        let task = TaskConfig::CausalLm(config.clone());
        let built = build(&task, &InnerKind::sgd(0.1), &FLEX, 1, &Shards::whole());
        fs::write(&file, whole).unwrap();
        let line = built.err().unwrap().to_string();
        assert!(!line.contains('\n'), "{line}");
        line
    };
    let usual = of_chats(dir.path());
    let line = refused(
        &|text| *text = text.replacen("assistant", "user", 1),
        &usual,
    );
    assert!(
        line.contains("line 1: ") && line.contains("must alternate"),
        "{line}"
    );
    let line = refused(&|text| text.push_str("{\"messages\": \"x\"}\n"), &usual);
    assert!(
        line.contains("line 81: it is no list of messages"),
        "{line}"
    );
    let line = refused(&|text| text.insert_str(0, "{\"messages\": []}\n"), &usual);
    assert!(
        line.contains("line 1: the conversation has no messages"),
        "{line}"
    );
    let tools = |text: &mut String| {
        *text = text.replacen("{\"messages\"", "{\"tools\": [1], \"messages\"", 1)
    };
    let line = refused(&tools, &usual);
    assert!(
        line.contains("line 1 ") && line.contains("`tools`"),
        "{line}"
    );
    let other = TaskConfig::LanguageModel(LanguageConfig::of(usual.data.clone()));
    let built = build(&other, &InnerKind::sgd(0.1), &FLEX, 1, &Shards::whole());
    let line = built.err().unwrap().to_string();
    assert!(
        line.contains("conversations need `task.kind` = \"causal-lm\""),
        "{line}"
    );
    let bytes = CausalConfig {
        tokenizer: None,
        ..usual.clone()
    };
    let line = refused(&|_| {}, &bytes);
    assert!(line.contains("which need a chat template"), "{line}");
    fs::remove_file(dir.path().join("base/chat_template.jinja")).unwrap();
    let line = refused(&|_| {}, &usual);
    assert!(line.contains("base: there is no chat template"), "{line}");
}

#[test]
fn what_does_not_fit_is_refused_in_one_line() {
    let dir = text();
    let path = dir.path();
    let tokenizer = |folder: &str| Some(fixture(folder).to_string_lossy().into_owned());
    let bf16 = of_folder(path, fixture("llama-bf16"));
    let mut targets = with_adapters(of_folder(path, fixture("llama")));
    if let Some(lora) = &mut targets.lora {
        lora.targets = Some(vec!["q_prj".to_owned()]);
    }
    let cases = [
        (of_folder(path, path.join("none")), "none/config.json: "),
        (bf16.clone(), "tokenizer.json: it is missing"),
        (
            CausalConfig {
                tokenizer: tokenizer("gpt2"),
                ..bf16
            },
            "has 320 tokens, the model only 64",
        ),
        (
            CausalConfig {
                context: Some(65),
                ..of_folder(path, fixture("llama"))
            },
            "`task.context` is 65, the model takes sequences of at most 64",
        ),
        (
            CausalConfig {
                held_out: 0.001,
                ..of_folder(path, fixture("llama"))
            },
            "a window is 17",
        ),
        (targets, "no layer \"q_prj\"; did you mean `q_proj`?"),
    ];
    for (config, expected) in cases {
        let task = TaskConfig::CausalLm(config);
        let built = build(&task, &InnerKind::sgd(0.1), &FLEX, 1, &Shards::whole());
        let line = built.err().unwrap().to_string();
        assert!(line.contains(expected), "{line}");
        assert!(!line.contains('\n'), "{line}");
    }
}
