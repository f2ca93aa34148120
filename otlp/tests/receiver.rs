//! What is exported, read back by a small receiver: an HTTP server that decodes what arrives.

#![allow(clippy::unwrap_used, reason = "helpers of tests may, as tests do")]

use murmurate_otlp::{Endpoint, Expired, Otlp, Source, Values};
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value as Number;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, SystemTime};

/// One request: its path and its body.
type Arrived = (String, Vec<u8>);

/// Answers every request with this status, and passes it on.
fn receiver(status: u16) -> (Endpoint, Receiver<Arrived>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, arrived) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let found = request(stream.unwrap(), status);
            if sender.send(found).is_err() {
                return;
            }
        }
    });
    (format!("http://{address}/otlp").parse().unwrap(), arrived)
}

fn request(stream: TcpStream, status: u16) -> Arrived {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    let path = line.split(' ').nth(1).unwrap().to_owned();
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let Some((name, value)) = line.trim_end().split_once(": ") else {
            break;
        };
        headers.insert(name.to_owned(), value.to_owned());
    }
    assert_eq!(headers["content-type"], "application/x-protobuf");
    let mut body = vec![0; headers["content-length"].parse().unwrap()];
    reader.read_exact(&mut body).unwrap();
    let answer = format!("HTTP/1.1 {status} X\r\ncontent-length: 0\r\n\r\n");
    reader.get_mut().write_all(answer.as_bytes()).unwrap();
    (path, body)
}

fn source() -> Source {
    Source {
        peer: "ab12".to_owned(),
        name: Some("gpu 1".to_owned()),
        version: "0.1.0".to_owned(),
        run: "birds".to_owned(),
        preset: "diloco".to_owned(),
    }
}

fn at(seconds: f64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000) + Duration::from_secs_f64(seconds)
}

fn text(attributes: &[KeyValue], key: &str) -> Option<String> {
    let found = attributes.iter().find(|pair| pair.key == key)?;
    match found.value.as_ref()?.value.as_ref()? {
        Value::StringValue(text) => Some(text.clone()),
        Value::IntValue(number) => Some(number.to_string()),
        Value::DoubleValue(number) => Some(number.to_string()),
        other => panic!("{other:?}"),
    }
}

/// Two rounds, the second of which is not over.
fn two_rounds(otlp: &mut Otlp) {
    otlp.phase(at(0.0), 4, "join");
    otlp.phase(at(1.0), 4, "train");
    otlp.phase(at(3.0), 4, "exchange");
    otlp.waited(
        at(3.75),
        "contributions",
        Duration::from_millis(500),
        Expired::Yes,
    );
    otlp.phase(at(4.0), 4, "settle");
    otlp.measured(Values {
        rounds: 5,
        inner_steps: 100,
        samples: 3200,
        bytes_sent: 7,
        bytes_received: 9,
        peers: 3,
        train_s: 2.0,
        round_s: Some(3.0),
        loss: Some(0.5),
        test_loss: None,
        test_accuracy: Some(0.25),
    });
    otlp.phase(at(4.5), 5, "train");
}

/// Everything that arrives until there are both traces and metrics.
fn all(arrived: &Receiver<Arrived>) -> (Vec<Span>, ExportMetricsServiceRequest) {
    let (mut spans, mut metrics) = (Vec::new(), None);
    while spans.is_empty() || metrics.is_none() {
        let (path, body) = arrived.recv_timeout(Duration::from_secs(60)).unwrap();
        match path.as_str() {
            "/otlp/v1/traces" => {
                let found = ExportTraceServiceRequest::decode(body.as_slice()).unwrap();
                for of in found.resource_spans {
                    let attributes = of.resource.unwrap().attributes;
                    let known = |key| text(&attributes, key);
                    assert_eq!(known("service.name").as_deref(), Some("murmurate"));
                    assert_eq!(known("service.instance.id").as_deref(), Some("ab12"));
                    assert_eq!(known("murmurate.run").as_deref(), Some("birds"));
                    assert_eq!(known("murmurate.daemon").as_deref(), Some("gpu 1"));
                    let scopes = of.scope_spans.into_iter();
                    spans.extend(scopes.flat_map(|scope| scope.spans));
                }
            }
            "/otlp/v1/metrics" => {
                metrics = Some(ExportMetricsServiceRequest::decode(body.as_slice()).unwrap());
            }
            other => panic!("{other}"),
        }
    }
    (spans, metrics.unwrap())
}

/// The metrics by name, each with its value.
fn values_of(metrics: &ExportMetricsServiceRequest) -> BTreeMap<&str, f64> {
    let scopes = metrics
        .resource_metrics
        .iter()
        .flat_map(|of| &of.scope_metrics);
    scopes
        .flat_map(|scope| &scope.metrics)
        .map(|metric| {
            let points = match metric.data.as_ref().unwrap() {
                Data::Gauge(gauge) => &gauge.data_points,
                Data::Sum(sum) => {
                    assert!(sum.is_monotonic, "{}", metric.name);
                    &sum.data_points
                }
                other => panic!("{other:?}"),
            };
            let value = match points[0].value.unwrap() {
                Number::AsDouble(value) => value,
                Number::AsInt(value) => value as f64,
            };
            (metric.name.as_str(), value)
        })
        .collect()
}

#[test]
fn rounds_arrive_as_spans_and_values_as_metrics() {
    let (endpoint, arrived) = receiver(200);
    let mut otlp = Otlp::start(&endpoint, &source()).unwrap();
    two_rounds(&mut otlp);
    otlp.finish(at(5.0));
    let (spans, metrics) = all(&arrived);

    let span = |name: &str, round: &str| {
        let is = |span: &&Span| {
            let number = text(&span.attributes, "murmurate.round");
            span.name == name && number.as_deref().unwrap_or(round) == round
        };
        spans
            .iter()
            .find(is)
            .unwrap_or_else(|| panic!("no {name} in {spans:?}"))
    };
    let seconds = |span: &Span| (span.end_time_unix_nano - span.start_time_unix_nano) as f64 / 1e9;
    let round = span("round", "4");
    assert_eq!(seconds(round), 3.5);
    assert_eq!(
        text(&round.attributes, "murmurate.loss").as_deref(),
        Some("0.5")
    );
    assert_eq!(text(&round.attributes, "murmurate.test.loss"), None);
    for (name, length) in [("train", 2.0), ("exchange", 1.0), ("settle", 0.5)] {
        let phase = span(name, "4");
        assert_eq!(seconds(phase), length, "{name}");
        assert_eq!(phase.parent_span_id, round.span_id, "{name}");
        assert_eq!(phase.trace_id, round.trace_id, "{name}");
    }
    let wait = span("wait for contributions", "4");
    assert_eq!((seconds(wait), &wait.parent_span_id), (0.5, &round.span_id));
    assert_eq!(
        wait.status.as_ref().unwrap().message,
        "its deadline has passed"
    );
    let join = span("join", "4");
    assert!(join.parent_span_id.is_empty() && join.trace_id != round.trace_id);
    // The round under way ends with the daemon.
    assert_eq!(seconds(span("round", "5")), 0.5);
    assert_eq!(spans.len(), 8, "{spans:?}");

    let expected = BTreeMap::from([
        ("murmurate.rounds", 5.0),
        ("murmurate.inner_steps", 100.0),
        ("murmurate.samples", 3200.0),
        ("murmurate.bytes.sent", 7.0),
        ("murmurate.bytes.received", 9.0),
        ("murmurate.train.time", 2.0),
        ("murmurate.peers", 3.0),
        ("murmurate.round.duration", 3.0),
        ("murmurate.loss", 0.5),
        ("murmurate.test.accuracy", 0.25),
    ]);
    assert_eq!(values_of(&metrics), expected);
}

#[test]
fn a_collector_that_refuses_or_is_gone_is_told_and_nothing_waits_for_it() {
    let (refuses, arrived) = receiver(503);
    let gone = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}", listener.local_addr().unwrap())
    };
    for (endpoint, why) in [
        (refuses, "/v1/traces answers 503"),
        (gone.parse().unwrap(), "refused"),
    ] {
        let mut otlp = Otlp::start(&endpoint, &source()).unwrap();
        assert_eq!(otlp.news(), None);
        two_rounds(&mut otlp);
        let said = otlp.flushed().unwrap();
        assert!(
            said.contains(why) && said.contains("training goes on"),
            "{said}"
        );
        assert_eq!(otlp.news(), None, "once");
        otlp.finish(at(5.0));
    }
    drop(arrived);
}
