"""What the judge of a view reads: every text that a model reads."""

from lab.reading import texts_of


def test_the_texts_within_search_results_and_documents_are_read():
    text = {"type": "text", "text": "a page"}
    blocks = [
        {
            "type": "search_result",
            "source": "s",
            "title": "t",
            "content": [text, text],
        },
        {
            "type": "document",
            "source": {
                "type": "text",
                "data": "plain",
                "media_type": "text/plain",
            },
        },
        {
            "type": "document",
            "source": {"type": "content", "content": "one string"},
        },
        {"type": "document", "source": {"type": "content", "content": [text]}},
        {
            "type": "document",
            "source": {
                "type": "base64",
                "data": "JVBERi0=",
                "media_type": "a/pdf",
            },
        },
    ]
    assert texts_of(blocks) == [
        "a page",
        "a page",
        "plain",
        "one string",
        "a page",
    ]
