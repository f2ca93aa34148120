//! A headless Chromium, driven by its driver over WebDriver. Where either is not installed, a test says
//! so and ends.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// How long a command of the browser may take.
const ANSWER_WAIT: Duration = Duration::from_secs(30);

/// A browser with one window.
#[derive(Debug)]
pub struct Browser {
    driver: Child,
    address: String,
    session: String,
    /// What the browser would otherwise leave in the home directory.
    profile: tempfile::TempDir,
}

impl Browser {
    /// Starts a browser; `None` where Chromium or its driver is not installed.
    pub fn start() -> Option<Self> {
        let chromium = found("chromium").or_else(|| found("chromium-browser"))?;
        let program = found("chromedriver")?;
        let mut driver = Command::new(program)
            .arg("--port=0")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(driver.stdout.take().unwrap()).lines();
        let port = lines.find_map(|line| {
            let line = line.ok()?;
            let (_, port) = line.split_once("successfully on port ")?;
            port.trim_end_matches('.').parse::<u16>().ok()
        });
        // The pipe must not fill.
        std::thread::spawn(move || lines.for_each(drop));
        let mut browser = Self {
            driver,
            address: format!("127.0.0.1:{}", port.expect("the driver names its port")),
            session: String::new(),
            profile: tempfile::tempdir().unwrap(),
        };
        let profile = format!("--user-data-dir={}", browser.profile.path().display());
        let arguments = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            &profile,
        ];
        let options = json!({"binary": chromium, "args": arguments});
        let wanted =
            json!({"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}});
        let begun = browser.ask(
            "POST",
            "/session",
            &json!({"capabilities": {"alwaysMatch": wanted}}),
        );
        begun["sessionId"]
            .as_str()
            .expect("a session")
            .clone_into(&mut browser.session);
        Some(browser)
    }

    /// Opens a page, in a window of this size.
    pub fn open(&self, url: &str, (width, height): (u32, u32)) {
        self.resize((width, height));
        self.command("url", &json!({"url": url}));
    }

    /// Changes the window's size.
    pub fn resize(&self, (width, height): (u32, u32)) {
        let size =
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.devtools("Emulation.setDeviceMetricsOverride", &size);
    }

    /// Prefers dark pages, or light ones.
    pub fn prefer(&self, scheme: &str) {
        let feature = json!({"name": "prefers-color-scheme", "value": scheme});
        self.devtools(
            "Emulation.setEmulatedMedia",
            &json!({"features": [feature]}),
        );
    }

    /// Runs a script in the page and returns what it returns.
    pub fn run(&self, script: &str) -> Value {
        self.command("execute/sync", &json!({"script": script, "args": []}))
    }

    /// What the page wrote to the console as warnings and errors, since the last call.
    pub fn complaints(&self) -> Vec<String> {
        let log = self.command("se/log", &json!({"type": "browser"}));
        let lines = log.as_array().unwrap().iter();
        let lines = lines.filter(|line| line["level"] == "SEVERE" || line["level"] == "WARNING");
        lines.map(|line| line["message"].to_string()).collect()
    }

    /// Writes a picture of the window.
    pub fn picture(&self, file: &Path) {
        let path = format!("/session/{}/screenshot", self.session);
        let picture = self.ask("GET", &path, &Value::Null);
        std::fs::write(file, from_base64(picture.as_str().unwrap())).unwrap();
    }

    fn devtools(&self, name: &str, parameters: &Value) {
        self.command(
            "goog/cdp/execute",
            &json!({"cmd": name, "params": parameters}),
        );
    }

    fn command(&self, name: &str, body: &Value) -> Value {
        self.ask("POST", &format!("/session/{}/{name}", self.session), body)
    }

    fn ask(&self, method: &str, path: &str, body: &Value) -> Value {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(ANSWER_WAIT)).unwrap();
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        let (host, length) = (&self.address, body.len());
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        )
        .unwrap();
        let (head, content) = answer(&mut BufReader::new(stream));
        assert!(head.contains(" 200 "), "{path}: {head}{content}");
        let mut content: Value = serde_json::from_str(&content).unwrap();
        content["value"].take()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The driver ends the browser with the session.
        if let Ok(mut stream) = TcpStream::connect(&self.address) {
            let (session, host) = (&self.session, &self.address);
            let end = format!(
                "DELETE /session/{session} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
            );
            let _ = stream.set_read_timeout(Some(ANSWER_WAIT));
            let _ = stream.write_all(end.as_bytes());
            let _ = stream.read(&mut [0]);
        }
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

/// The head of an answer and its content. The driver does not close the connection.
fn answer(from: &mut impl BufRead) -> (String, String) {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert_ne!(from.read_line(&mut head).unwrap(), 0, "no answer: {head}");
    }
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        let found = name.eq_ignore_ascii_case("content-length");
        found.then(|| value.trim().parse::<usize>())?.ok()
    });
    let mut content = vec![0; length.expect("the answer has a length")];
    from.read_exact(&mut content).unwrap();
    (head, String::from_utf8(content).unwrap())
}

/// A program of the search path.
fn found(name: &str) -> Option<PathBuf> {
    let paths = std::env::var_os("PATH")?;
    let mut files = std::env::split_paths(&paths).map(|path| path.join(name));
    files.find(|file| file.is_file())
}

fn from_base64(text: &str) -> Vec<u8> {
    let digits = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut bytes = Vec::new();
    let (mut bits, mut count) = (0u32, 0);
    for letter in text.bytes().filter(|letter| *letter != b'=') {
        let digit = digits.iter().position(|digit| *digit == letter);
        bits = bits << 6 | digit.expect("base64") as u32;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    bytes
}
