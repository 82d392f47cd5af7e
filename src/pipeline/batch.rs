//! Many recordings: decoding runs ahead of inference, results are written as they finish.
