//! The unit of a task's loss.

/// What one term of a task's mean loss stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Unit {
    /// Bytes of text of a token; `None` where the task is no language.
    pub bytes_per_token: Option<f64>,
}

impl Unit {
    /// Perplexity of a token, and bits per byte of text, for a mean loss in nats; `None` where the task
    /// is no language.
    ///
    /// ```text
    /// perplexity = exp(loss),   bits per byte = loss / (ln 2 * bytes of a token)
    /// ```
    pub fn of_text(self, loss: f64) -> Option<(f64, f64)> {
        let bytes = self.bytes_per_token?;
        Some((loss.exp(), loss / std::f64::consts::LN_2 / bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_nat_is_e_and_a_bit_and_a_half() {
        let unit = |bytes| Unit {
            bytes_per_token: bytes,
        };
        let (perplexity, bits) = unit(Some(4.0)).of_text(1.0).unwrap();
        assert_eq!(perplexity, std::f64::consts::E);
        assert!((bits - 0.360_673_760_222_241).abs() < 1e-12);
        assert_eq!(unit(None).of_text(1.0), None);
    }
}
