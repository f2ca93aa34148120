//! libp2p's certificates: self-signed X.509 with the peer's public key in an extension.
//!
//! **Source:** libp2p's specification of TLS 1.3, with RFC 5280 for the certificate around the extension.
//! The checks are those of the crate libp2p-tls, which needs a second cryptographic library in C.

use crate::quic::der::{self, Reader};
use libp2p::PeerId;
use libp2p::identity::{Keypair, PublicKey};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair};
use rustls::SignatureScheme;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::alg_id::ECDSA_SHA256;
use rustls::pki_types::{
    CertificateDer, PrivatePkcs8KeyDer, SignatureVerificationAlgorithm, UnixTime,
};
use rustls::sign::CertifiedKey;

/// 1.3.6.1.4.1.53594.1.1, libp2p's extension.
const EXTENSION: [u8; 10] = [0x2b, 0x06, 0x01, 0x04, 0x01, 0x83, 0xa2, 0x5a, 0x01, 0x01];

/// Domain of a peer's signature, which the certificate's public key follows.
const PREFIX: &[u8] = b"libp2p-tls-handshake:";

/// Tags of the version and of the extensions.
const VERSION: u8 = 0xa0;
const EXTENSIONS: u8 = 0xa3;

/// Tags of two fields that are no longer used.
const UNIQUE_IDS: [u8; 2] = [0x81, 0x82];

/// The number of version 3.
const V3: [u8; 3] = [der::INTEGER, 1, 2];

/// Signature schemes of certificates, the preferred first. None uses fewer than 256 bits of hash.
pub(super) const SCHEMES: [SignatureScheme; 9] = [
    SignatureScheme::ED25519,
    SignatureScheme::ECDSA_NISTP256_SHA256,
    SignatureScheme::ECDSA_NISTP384_SHA384,
    SignatureScheme::RSA_PSS_SHA512,
    SignatureScheme::RSA_PSS_SHA384,
    SignatureScheme::RSA_PSS_SHA256,
    SignatureScheme::RSA_PKCS1_SHA512,
    SignatureScheme::RSA_PKCS1_SHA384,
    SignatureScheme::RSA_PKCS1_SHA256,
];

pub(super) struct Certificate<'a> {
    scheme: SignatureScheme,
    algorithm: &'static dyn SignatureVerificationAlgorithm,
    key: &'a [u8],
    peer: PeerId,
}

impl Certificate<'_> {
    pub(super) fn peer_id(&self) -> PeerId {
        self.peer
    }

    /// Checks a signature by the certificate's key.
    pub(super) fn has_signed(
        &self,
        scheme: SignatureScheme,
        message: &[u8],
        signature: &[u8],
    ) -> bool {
        let check = || {
            self.algorithm
                .verify_signature(self.key, message, signature)
        };
        scheme == self.scheme && check().is_ok()
    }
}

/// A certificate for an identity, with a new key. It holds until the year 4096, as libp2p's does.
///
/// # Errors
/// If there are no random bytes, or the identity cannot sign.
pub(super) fn generate(identity: &Keypair) -> Result<CertifiedKey, String> {
    let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &SystemRandom::new());
    let pkcs8 = pkcs8.map_err(|_| "the system has no random bytes")?;
    let pkcs8 = PrivatePkcs8KeyDer::from(pkcs8.as_ref().to_vec());
    let said = |error: rustls::Error| error.to_string();
    let keys = default_provider().key_provider;
    let key = keys.load_private_key(pkcs8.into()).map_err(said)?;
    let public = key.public_key().ok_or("its key is not known")?;
    let signed = [PREFIX, &public].concat();
    let signature = identity.sign(&signed);
    let signature = signature.map_err(|error| error.to_string())?;
    let names = der::value(der::SEQUENCE, &[]);
    let algorithm = der::value(der::SEQUENCE, &[&ECDSA_SHA256]);
    let fields = der::value(
        der::SEQUENCE,
        &[
            &der::value(VERSION, &[&V3]),
            // Each key signs one certificate.
            &der::value(der::INTEGER, &[&[1]]),
            &algorithm,
            &names,
            &der::value(
                der::SEQUENCE,
                &[
                    &der::value(der::UTC_TIME, &[b"750101000000Z"]),
                    &der::value(der::GENERALIZED_TIME, &[b"40960101000000Z"]),
                ],
            ),
            &names,
            &public,
            &der::value(EXTENSIONS, &[&extensions(identity, &signature)]),
        ],
    );
    let signer = key.choose_scheme(&[SignatureScheme::ECDSA_NISTP256_SHA256]);
    let signer = signer.ok_or("its key does not sign")?;
    let bits = [&[0], &signer.sign(&fields).map_err(said)?[..]].concat();
    let bits = der::value(der::BIT_STRING, &[&bits]);
    let certificate = der::value(der::SEQUENCE, &[&fields, &algorithm, &bits]);
    Ok(CertifiedKey::new(vec![certificate.into()], key))
}

/// The list of libp2p's extension, which is critical.
fn extensions(identity: &Keypair, signature: &[u8]) -> Vec<u8> {
    let signed_key = der::value(
        der::SEQUENCE,
        &[
            &der::value(der::OCTET_STRING, &[&identity.public().encode_protobuf()]),
            &der::value(der::OCTET_STRING, &[signature]),
        ],
    );
    let extension = der::value(
        der::SEQUENCE,
        &[
            &der::value(der::OID, &[&EXTENSION]),
            &der::value(der::BOOLEAN, &[&[0xff]]),
            &der::value(der::OCTET_STRING, &[&signed_key]),
        ],
    );
    der::value(der::SEQUENCE, &[&extension])
}

/// A certificate that holds now, is signed by its own key, and whose key its peer signed. `None` if one
/// of these is not so.
pub(super) fn parse<'a>(certificate: &'a CertificateDer<'_>) -> Option<Certificate<'a>> {
    let parsed = Parsed::read(certificate)?;
    let (from, until) = parsed.valid;
    if !(from..=until).contains(&(UnixTime::now().as_secs() as i64)) {
        return None;
    }
    let (scheme, algorithm) = parsed.algorithm()?;
    let check = algorithm.verify_signature(parsed.key, parsed.signed, parsed.signature);
    check.ok()?;
    let message = [PREFIX, parsed.key_info].concat();
    let peer = PublicKey::try_decode_protobuf(parsed.peer_key).ok()?;
    peer.verify(&message, parsed.peer_signature)
        .then(|| Certificate {
            scheme,
            algorithm,
            key: parsed.key,
            peer: peer.to_peer_id(),
        })
}

/// The fields of a certificate that count, before any check of them.
struct Parsed<'a> {
    signed: &'a [u8],
    signature_id: &'a [u8],
    signature: &'a [u8],
    valid: (i64, i64),
    key_info: &'a [u8],
    key_id: &'a [u8],
    key: &'a [u8],
    peer_key: &'a [u8],
    peer_signature: &'a [u8],
}

impl<'a> Parsed<'a> {
    fn read(certificate: &'a [u8]) -> Option<Self> {
        let mut all = Reader::new(certificate);
        let mut parts = all.inside(der::SEQUENCE)?;
        let (signed, fields) = parts.both(der::SEQUENCE)?;
        let signature_id = parts.contents(der::SEQUENCE)?;
        let signature = bits(&mut parts)?;
        let mut fields = Reader::new(fields);
        let is_v3 = fields.contents(VERSION)? == V3;
        fields.contents(der::INTEGER)?;
        let same_id = fields.contents(der::SEQUENCE)? == signature_id;
        fields.contents(der::SEQUENCE)?;
        let mut times = fields.inside(der::SEQUENCE)?;
        let valid = (time(&mut times)?, time(&mut times)?);
        fields.contents(der::SEQUENCE)?;
        let (key_info, key) = fields.both(der::SEQUENCE)?;
        let mut key = Reader::new(key);
        let (key_id, key) = (key.contents(der::SEQUENCE)?, bits(&mut key)?);
        for tag in UNIQUE_IDS {
            fields.optional(tag);
        }
        let mut extensions = fields.inside(EXTENSIONS)?;
        let (peer_key, peer_signature) = signed_key(extensions.inside(der::SEQUENCE)?)?;
        let ends = [all, parts, fields, times, extensions];
        let is_whole = ends.iter().all(|reader| reader.is_at_end());
        (is_v3 && same_id && is_whole).then_some(Self {
            signed,
            signature_id,
            signature,
            valid,
            key_info,
            key_id,
            key,
            peer_key,
            peer_signature,
        })
    }

    /// The scheme that fits both the key and the signature.
    fn algorithm(&self) -> Option<(SignatureScheme, &'static dyn SignatureVerificationAlgorithm)> {
        let known = default_provider().signature_verification_algorithms.mapping;
        let schemes = known.iter().filter(|(scheme, _)| SCHEMES.contains(scheme));
        // The first algorithm of a scheme is the one of TLS 1.3.
        let mut algorithms = schemes.filter_map(|(scheme, all)| Some((*scheme, *all.first()?)));
        algorithms.find(|(_, algorithm)| {
            algorithm.public_key_alg_id().as_ref() == self.key_id
                && algorithm.signature_alg_id().as_ref() == self.signature_id
        })
    }
}

/// A string of whole bytes.
fn bits<'a>(reader: &mut Reader<'a>) -> Option<&'a [u8]> {
    reader.contents(der::BIT_STRING)?.strip_prefix(&[0])
}

/// Key and signature in libp2p's extension. It occurs once, and no other extension is critical.
fn signed_key(mut extensions: Reader<'_>) -> Option<(&[u8], &[u8])> {
    let mut found = None;
    while !extensions.is_at_end() {
        let mut extension = extensions.inside(der::SEQUENCE)?;
        let id = extension.contents(der::OID)?;
        let is_critical = extension.optional(der::BOOLEAN).is_some_and(|is| is != [0]);
        let mut value = extension.inside(der::OCTET_STRING)?;
        if id == EXTENSION {
            let mut pair = value.inside(der::SEQUENCE)?;
            let pair = (
                pair.contents(der::OCTET_STRING)?,
                pair.contents(der::OCTET_STRING)?,
            );
            if found.replace(pair).is_some() {
                return None;
            }
        } else if is_critical {
            return None;
        }
    }
    found
}

/// Seconds since 1970 of a time in UTC.
///
/// **Source:** RFC 5280, 4.1.2.5: two digits of a year are those of 1950 to 2049.
fn time(reader: &mut Reader<'_>) -> Option<i64> {
    let (year, rest) = match reader.optional(der::UTC_TIME) {
        Some(text) => {
            let (year, rest) = text.split_at_checked(2)?;
            let year = number(year)?;
            (year + if year < 50 { 2000 } else { 1900 }, rest)
        }
        None => {
            let (year, rest) = reader
                .contents(der::GENERALIZED_TIME)?
                .split_at_checked(4)?;
            (number(year)?, rest)
        }
    };
    let (digits, _) = rest.strip_suffix(b"Z")?.as_chunks::<2>();
    let mut parts = [0; 5];
    if rest.len() != 11 {
        return None;
    }
    for (part, digits) in parts.iter_mut().zip(digits) {
        *part = number(digits)?;
    }
    let [month, day, hour, minute, second] = parts;
    let in_range = (1..=12).contains(&month) && (1..=31).contains(&day);
    let in_day = hour < 24 && minute < 60 && second < 60;
    let seconds = (hour * 60 + minute) * 60 + second;
    (in_range && in_day).then(|| days(year, month, day) * 86_400 + seconds)
}

fn number(digits: &[u8]) -> Option<i64> {
    digits.iter().try_fold(0, |number, digit| {
        digit
            .is_ascii_digit()
            .then(|| number * 10 + i64::from(digit - b'0'))
    })
}

/// Days from 1 January 1970 to a day of the Gregorian calendar. A year here begins in March, so that the
/// day of a leap year is its last.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month < 3);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    year * 365 + year / 4 - year / 100 + year / 400 + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(text: &str) -> Vec<u8> {
        let byte = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
        (0..text.len()).step_by(2).map(byte).collect()
    }

    /// The certificate of an Ed25519 identity among the specification's test vectors.
    const VECTOR: &str = "308201773082011ea003020102020900f5bd0debaa597f52300a06082a8648ce3d04030230003020170d3735303130313030303030305a180f34303936303130313030303030305a30003059301306072a8648ce3d020106082a8648ce3d030107034200046bf9871220d71dcb3483ecdfcbfcc7c103f8509d0974b3c18ab1f1be1302d643103a08f7a7722c1b247ba3876fe2c59e26526f479d7718a85202ddbe47562358a37f307d307b060a2b0601040183a25a01010101ff046a30680424080112207fda21856709c5ae12fd6e8450623f15f11955d384212b89f56e7e136d2e17280440aaa6bffabe91b6f30c35e3aa4f94b1188fed96b0ffdd393f4c58c1c047854120e674ce64c788406d1c2c4b116581fd7411b309881c3c7f20b46e54c7e6fe7f0f300a06082a8648ce3d040302034700304402207d1a1dbd2bda235ff2ec87daf006f9b04ba076a5a5530180cd9c2e8f6399e09d0220458527178c7e77024601dbb1b256593e9b96d961b96349d1f560114f61a87595";

    /// The same of a peer that did not sign the certificate's key.
    const UNSIGNED: &str = "308201773082011da003020102020830a73c5d896a1109300a06082a8648ce3d04030230003020170d3735303130313030303030305a180f34303936303130313030303030305a30003059301306072a8648ce3d020106082a8648ce3d03010703420004bbe62df9a7c1c46b7f1f21d556deec5382a36df146fb29c7f1240e60d7d5328570e3b71d99602b77a65c9b3655f62837f8d66b59f1763b8c9beba3be07778043a37f307d307b060a2b0601040183a25a01010101ff046a3068042408011220ec8094573afb9728088860864f7bcea2d4fd412fef09a8e2d24d482377c20db60440ecabae8354afa2f0af4b8d2ad871e865cb5a7c0c8d3dbdbf42de577f92461a0ebb0a28703e33581af7d2a4f2270fc37aec6261fcc95f8af08f3f4806581c730a300a06082a8648ce3d040302034800304502202dfb17a6fa0f94ee0e2e6a3b9fb6e986f311dee27392058016464bd130930a61022100ba4b937a11c8d3172b81e7cd04aedb79b978c4379c2b5b24d565dd5d67d3cb3c";

    #[test]
    fn the_specifications_vectors_are_told_apart() {
        let certificate = CertificateDer::from(hex(VECTOR));
        let peer = parse(&certificate).unwrap().peer_id().to_string();
        assert_eq!(peer, "12D3KooWJRSrypvnpHgc6ZAgyCni4KcSmbV7uGRaMw5LgMKT18fq");
        let certificate = hex(UNSIGNED);
        assert!(Parsed::read(&certificate).is_some());
        assert!(parse(&certificate.into()).is_none());
    }

    #[test]
    fn a_new_certificate_proves_its_peer_and_its_key() {
        let identity = Keypair::generate_ed25519();
        let made = generate(&identity).unwrap();
        let parsed = parse(&made.cert[0]).unwrap();
        assert_eq!(parsed.peer_id(), identity.public().to_peer_id());
        let scheme = SignatureScheme::ECDSA_NISTP256_SHA256;
        let signature = made.key.choose_scheme(&[scheme]).unwrap();
        let signature = signature.sign(b"a").unwrap();
        assert!(parsed.has_signed(scheme, b"a", &signature));
        assert!(!parsed.has_signed(scheme, b"b", &signature));
        assert!(!parsed.has_signed(SignatureScheme::ED25519, b"a", &signature));
        // Its fields are laid out as in the vector, apart from the serial number.
        let (ours, theirs) = (&made.cert[0], hex(VECTOR));
        assert_eq!(ours[21..70], theirs[29..78]);
        assert_eq!(
            Parsed::read(ours).unwrap().valid,
            Parsed::read(&theirs).unwrap().valid
        );
    }

    #[test]
    fn bytes_behind_a_certificate_or_missing_ones_are_refused() {
        let whole = hex(VECTOR);
        for len in 0..whole.len() {
            assert!(Parsed::read(&whole[..len]).is_none(), "{len}");
        }
        assert!(Parsed::read(&[&whole[..], &[0]].concat()).is_none());
    }

    #[test]
    fn no_byte_makes_the_parser_panic_or_read_past_the_end() {
        let whole = hex(VECTOR);
        let mut damaged = whole.clone();
        for at in 0..whole.len() {
            for byte in 0..=255 {
                damaged[at] = byte;
                if let Some(parsed) = Parsed::read(&damaged) {
                    assert!(parsed.signed.len() + parsed.signature.len() < whole.len());
                }
            }
            damaged[at] = whole[at];
        }
    }

    #[test]
    fn times_are_those_of_the_calendar_and_wrong_ones_are_refused() {
        let time = |tag, text: &str| {
            let bytes = der::value(tag, &[text.as_bytes()]);
            super::time(&mut Reader::new(&bytes))
        };
        let long = |text| time(der::GENERALIZED_TIME, text);
        assert_eq!(time(der::UTC_TIME, "700101000000Z"), Some(0));
        assert_eq!(time(der::UTC_TIME, "491231235959Z"), Some(2_524_607_999));
        assert_eq!(time(der::UTC_TIME, "500101000000Z"), Some(-631_152_000));
        assert_eq!(long("20000229120000Z"), Some(951_825_600));
        assert_eq!(long("40960101000000Z"), Some(67_090_118_400));
        for wrong in [
            "20001301000000Z",
            "20000100000000Z",
            "20000101240000Z",
            "20000101000000",
            "2000010100000Z",
            "2000010100000aZ",
            "20000101000000+0100",
        ] {
            assert_eq!(long(wrong), None, "{wrong}");
        }
    }

    fn extension(id: &[u8], critical: bool, contents: &[u8]) -> Vec<u8> {
        let (critical, contents) = (
            der::value(der::BOOLEAN, &[&[0xff * u8::from(critical)]]),
            der::value(der::OCTET_STRING, &[contents]),
        );
        let id = der::value(der::OID, &[id]);
        der::value(der::SEQUENCE, &[&id, &critical, &contents])
    }

    #[test]
    fn libp2ps_extension_is_there_once_and_others_do_not_matter() {
        let pair = [&[5][..], &[6]].map(|bytes| der::value(der::OCTET_STRING, &[bytes]));
        let pair = der::value(der::SEQUENCE, &[&pair[0], &pair[1]]);
        let ours = extension(&EXTENSION, false, &pair);
        let found = |all: &[&[u8]]| {
            let all = all.concat();
            signed_key(Reader::new(&all)).map(|(key, signature)| (key[0], signature[0]))
        };
        assert_eq!(found(&[&ours]), Some((5, 6)));
        let (other, critical) = (extension(&[42], false, b"x"), extension(&[42], true, b"x"));
        assert_eq!(found(&[&other, &ours, &other]), Some((5, 6)));
        assert_eq!(found(&[&ours, &critical]), None);
        assert_eq!(found(&[&ours, &ours]), None);
        assert_eq!(found(&[&other]), None);
    }
}
