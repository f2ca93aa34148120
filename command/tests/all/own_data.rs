//! Models of one's own images and tables, by the commands of docs/data.md.

use crate::common::assert_has;
use crate::common::{failure, success};
use std::path::Path;

fn configure(dir: &Path, task: &str) {
    let config = format!(
        "[run]\nrounds = 3\n[task]\n{task}\n[strategy]\npreset = \"local-sgd\"\n[strategy.inner]\n\
         optimizer = \"adam-w\"\nlr = 5e-3\n[network]\nmdns = false\n"
    );
    std::fs::write(dir.join("node.toml"), config).unwrap();
}

const IMAGES: &str = "kind = \"image-classifier\"\ndata = \"pets\"\nmodel = \"cnn\"\nhidden = 8\n\
                      batch = 8\nsize = [8, 8]";

/// Writes a colour image of 12 rows.
fn png(file: &Path, width: u32, pixels: &[u8]) {
    let mut encoder = png::Encoder::new(std::fs::File::create(file).unwrap(), width, 12);
    encoder.set_color(png::ColorType::Rgb);
    let mut writer = encoder.write_header().unwrap();
    writer.write_image_data(pixels).unwrap();
}

fn jpeg(file: &Path, width: u32, pixels: &[u8]) {
    let encoder = jpeg_encoder::Encoder::new_file(file, 75).unwrap();
    let colours = jpeg_encoder::ColorType::Rgb;
    encoder.encode(pixels, width as u16, 12, colours).unwrap();
}

/// Colour images of several sizes: cats are red, dogs green.
fn pets(dir: &Path) {
    for (class, channel) in [("cat", 0), ("dog", 1)] {
        let folder = dir.join("pets").join(class);
        std::fs::create_dir_all(&folder).unwrap();
        for number in 0..20_u32 {
            let side = 8 + number % 5;
            let pixels = (0..12 * side).flat_map(|at| {
                let (x, y) = (at % side, at / side);
                let mut rgb = [(x * 37 + y * 11 + number) as u8 / 4; 3];
                rgb[channel] += 150;
                rgb
            });
            let pixels: Vec<u8> = pixels.collect();
            match number % 2 {
                0 => png(&folder.join(format!("{number}.png")), side, &pixels),
                _ => jpeg(&folder.join(format!("{number}.jpg")), side, &pixels),
            }
        }
    }
}

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn two_daemons_learn_a_folder_of_images_which_is_measured_afterwards() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    pets(dir);
    configure(dir, IMAGES);
    let local = ["local", "--nodes", "2", "--config", "node.toml", "--json"];
    let flags = ["--baseline", "0", "--dir", "swarm"];
    let report = json(&success(dir, &[&local[..], &flags].concat()));
    let nodes = report["nodes"].as_array().unwrap();
    assert_eq!(nodes.len(), 2);
    for node in nodes {
        assert_eq!(node["status"], "finished", "{node}");
        assert_eq!(node["digest"], nodes[0]["digest"]);
        assert!(node["test_accuracy"].as_f64().unwrap() > 0.9, "{node}");
    }
    let home = dir.join("swarm/node-0");
    let home = home.to_str().unwrap();
    success(dir, &["export", home, "--to", "pets.safetensors"]);
    let eval = ["eval", "--model", "pets.safetensors", "--json"];
    let line = failure(dir, &eval);
    assert!(line.starts_with("--data: pets.safetensors was"), "{line}");
    let found = json(&success(dir, &[&eval[..], &["--data", "pets"]].concat()));
    assert_eq!(found["test_accuracy"], nodes[0]["test_accuracy"]);
    assert_eq!(found["samples"], 4);
}

#[test]
fn wrong_images_are_one_line_that_names_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let run = ["run", "--config", "node.toml", "--dir", "a"];
    configure(dir, IMAGES);
    let line = failure(dir, &run);
    assert_has(&line, "pets: nothing is there; set `task.data` (--data)");
    std::fs::create_dir(dir.join("pets")).unwrap();
    let line = failure(dir, &run);
    assert!(line.contains("DIR/CLASS/IMAGE.png"), "{line}");
    pets(dir);
    let torn = dir.join("pets/dog/7.jpg");
    let bytes = std::fs::read(&torn).unwrap();
    std::fs::write(&torn, &bytes[..bytes.len() / 2]).unwrap();
    let line = failure(dir, &run);
    assert_has(&line, "pets/dog/7.jpg: the JPEG ends before");
    std::fs::write(&torn, bytes).unwrap();
    configure(dir, &format!("{IMAGES}\nclasses = 1"));
    let line = failure(dir, &run);
    assert!(line.contains("pets/dog: it has label 1"), "{line}");
    configure(dir, &format!("{IMAGES}\nclasses = [\"dog\", \"cats\"]"));
    let line = failure(dir, &run);
    assert_has(&line, "pets/cat: its name is none of the 2");
    std::fs::create_dir(dir.join("pets/eel")).unwrap();
    configure(dir, IMAGES);
    let line = failure(dir, &run);
    assert!(line.contains("pets/eel: no image of this class"), "{line}");
}

#[test]
fn a_wrong_label_in_an_idx_file_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let pixels = vec![7; 4 * 4 * 30];
    let mut labels: Vec<u8> = (0..30).map(|n| n % 3).collect();
    let mut images = vec![0, 0, 8, 3, 0, 0, 0, 30, 0, 0, 0, 4, 0, 0, 0, 4];
    images.extend(pixels);
    std::fs::write(dir.join("train-images-idx3-ubyte"), images).unwrap();
    let mut write = |place: usize, label| {
        labels[place] = label;
        let file = [&[0, 0, 8, 1, 0, 0, 0, 30][..], &labels].concat();
        std::fs::write(dir.join("train-labels-idx1-ubyte"), file).unwrap();
    };
    let run = ["run", "--config", "node.toml", "--dir", "a"];
    let task = "kind = \"image-classifier\"\ndata = \".\"\nheld_out = 0.1\nhidden = 4\nbatch = 4";
    configure(dir, task);
    write(17, 200);
    let line = failure(dir, &run);
    let expected = "./train-labels-idx1-ubyte: item 17 has label 200, but only 4 of the labels";
    assert!(line.contains(expected), "{line}");
    configure(dir, &format!("{task}\nclasses = 3"));
    let line = failure(dir, &run);
    assert_has(&line, "item 17 has label 200, but `task.classes` is 3");
    write(17, 2);
    // Data without the highest class make the same model.
    configure(dir, &format!("{task}\nclasses = 12"));
    success(dir, &run);
    success(dir, &["export", "a", "--to", "m.safetensors"]);
    let bytes = std::fs::read(dir.join("m.safetensors")).unwrap();
    let header = String::from_utf8_lossy(&bytes);
    assert!(header.contains("\"shape\":[4,12]"), "{header}");
}

#[test]
fn a_table_is_learned_and_wrong_cells_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let rows = (0..200).map(|n| format!("{},{},{}\n", n % 7, n % 5, (n % 7) + 2 * (n % 5)));
    let text = format!("a,b,price\n{}", rows.collect::<String>());
    std::fs::write(dir.join("prices.csv"), &text).unwrap();
    let task = "kind = \"tabular\"\ndata = \"prices.csv\"\ntarget = \"price\"\n\
                objective = \"regression\"\nbatch = 16\nscale = { price = [7, 3], a = [3, 2] }";
    configure(dir, task);
    let run = ["run", "--config", "node.toml", "--dir", "a"];
    success(dir, &run);
    success(dir, &["export", "a", "--to", "m.safetensors"]);
    let eval = ["eval", "--model", "m.safetensors", "--data", "prices.csv"];
    let found = json(&success(dir, &[&eval[..], &["--json"]].concat()));
    assert!(found["test_accuracy"].is_null(), "{found}");
    assert!(found["test_loss"].as_f64().unwrap() < 0.3, "{found}");
    let said = success(dir, &eval);
    assert!(
        said.starts_with("loss ")
            && said.ends_with(", squared error per row, on 20 held-out rows\n"),
        "{said}"
    );
    std::fs::write(
        dir.join("prices.csv"),
        text.replace("\n3,3,9\n", "\n3,oak,9\n"),
    )
    .unwrap();
    let line = failure(dir, &["run", "--config", "node.toml", "--dir", "b"]);
    assert_has(&line, "prices.csv:5: column `b` has `oak`: it is no number");
    configure(dir, &task.replace("\"price\"", "\"prise\""));
    let line = failure(dir, &["run", "--config", "node.toml", "--dir", "b"]);
    assert_has(
        &line,
        "no column `prise` (`task.target`); did you mean `price`?",
    );
}

#[test]
fn a_loss_that_is_not_finite_ends_a_daemon_with_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let task = "kind = \"image-classifier\"\nmodel = \"mlp\"";
    configure(dir, task);
    let config = std::fs::read_to_string(dir.join("node.toml")).unwrap();
    let steep = config.replace("\"adam-w\"\nlr = 5e-3", "\"sgd\"\nlr = 1e30");
    assert_ne!(config, steep);
    std::fs::write(dir.join("node.toml"), steep).unwrap();
    let line = failure(dir, &["run", "--config", "node.toml", "--dir", "a"]);
    assert_has(&line, "the training loss is no longer finite");
}
