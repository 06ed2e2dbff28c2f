"""The provider: one call, its reply or stream, its refusal, and what goes there as it came."""
