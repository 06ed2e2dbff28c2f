"""``ullage proxy``: an HTTP proxy in front of the providers that keeps every request in its window.

    config.py     what it is told: one frozen value, from a file, options and the environment
    routes.py     which upstream a request is for
    headers.py    which headers go on
    bodies.py     request bodies, as far as they may be held
    tenants.py    whose content a request is
    relay.py      one request and its reply
    upstream.py   an upstream, as an exchange sees it
    fitting.py    what fits requests: sessions of all conversations on one store
    relayed.py    the outcome of a request, as a value
    answers.py    what the proxy answers where no upstream does
    pages.py      what is answered here and not upstream: health, metrics, the live page
    watch.py      who looks on: metrics.py, seen.py (conversations), logs.py, spans.py
    siblings.py   the workers of one proxy, as each other sees them
    server.py     a listening socket, connections, the end
    stderr.py     standard error that nobody waits for
    workers.py    several processes on one socket
    agents.py     what makes a coding agent talk to the proxy
    command.py    a command with a proxy of its own (``ullage run``)
    settings_files.py  where each agent keeps its settings, and how one is changed
    installing.py      point an agent at the proxy for good (``ullage install``)
    service.py         the file of a service that starts the proxy
    answering.py       who answers at an address
    doctor.py     what is wrong with a set-up (``ullage doctor``)

aiohttp is at both ends (the extra ``proxy``) and is loaded when a server is started.
"""
