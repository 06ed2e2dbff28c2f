"""Amazon Bedrock Converse: everything that is known of this wire."""
