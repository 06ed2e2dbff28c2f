"""Google Gemini generateContent: everything that is known of this wire."""
