/// SHA-256 of OpenAI's `cl100k_base.tiktoken`.
pub const CL100K_SHA256: &str = "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7";
/// SHA-256 of OpenAI's `o200k_base.tiktoken`.
pub const O200K_SHA256: &str = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d";
