//! Limits of the server: what a request may ask for, and how far a subscriber may be behind.

use super::*;

#[tokio::test]
async fn limits_end_the_stream_with_the_servers_words() {
    let served = Served::start().await;
    let limits = FilterLimits {
        account_max: Some(1),
        owner_reject: [key(8)].into(),
        ..FilterLimits::default()
    };
    served.server.configure(|settings| settings.limits = limits);
    let filter = |pubkeys: Vec<Pubkey>, owners: Vec<Pubkey>| Request {
        accounts: BTreeMap::from([(
            "keys".to_owned(),
            AccountFilter {
                pubkeys,
                owners,
                ..AccountFilter::default()
            },
        )]),
        ..request(1)
    };
    let error = end(&mut served.open(filter(vec![key(1), key(2)], vec![])).await).await;
    let words = "failed to create filter: Max amount of Pubkeys reached, only 1 allowed";
    assert!(error.to_string().contains(words), "{error}");
    let mut live = served.listening(filter(vec![key(1)], vec![])).await;
    let rejected = live.replace(filter(vec![], vec![key(8)]));
    soon(rejected).await.expect("sent");
    let error = end(&mut live).await;
    assert!(matches!(error, StreamError::Refused(_)), "{error}");
    let words = format!("Pubkey {} in filters is not allowed", key(8));
    assert!(error.to_string().contains(&words), "{error}");
}

#[tokio::test]
async fn a_filter_without_keys_is_refused_where_the_server_is_set_so() {
    let served = Served::start().await;
    let closed = AccountFilter {
        lamports: Some(0),
        ..AccountFilter::default()
    };
    let keyless = Request {
        accounts: BTreeMap::from([("closed".to_owned(), closed)]),
        ..request(1)
    };
    drop(served.listening(keyless.clone()).await);
    served
        .server
        .configure(|settings| settings.limits.accounts_any = false);
    let error = end(&mut served.open(keyless).await).await;
    assert!(matches!(error, StreamError::Refused(_)), "{error}");
    let words = "failed to create filter: Subscribe on full stream with `any` is not allowed, at least one filter required";
    assert!(error.to_string().contains(words), "{error}");
}

#[tokio::test]
async fn addresses_and_filters_that_are_not_served_end_the_stream_of_all_that_share_it() {
    let served = Served::start().await;
    let refusal = |limits: FilterLimits, request: Request| {
        served.server.configure(|settings| settings.limits = limits);
        let served = &served;
        async move { end(&mut served.open(request).await).await.to_string() }
    };
    let of_addresses = Request {
        accounts: BTreeMap::from([(
            "keys".to_owned(),
            AccountFilter {
                pubkeys: vec![key(1), key(2)],
                ..AccountFilter::default()
            },
        )]),
        ..request(1)
    };
    let rejecting = FilterLimits {
        account_reject: [key(2)].into(),
        ..FilterLimits::default()
    };
    let words = refusal(rejecting, of_addresses.clone()).await;
    let expected = format!(
        "failed to create filter: Pubkey {} in filters is not allowed",
        key(2)
    );
    assert!(words.contains(&expected), "{words}");

    let without_slots = FilterLimits {
        slots_max: Some(0),
        ..FilterLimits::default()
    };
    let without_blocks = FilterLimits {
        blocks_meta_max: Some(0),
        ..FilterLimits::default()
    };
    for limits in [without_slots, without_blocks] {
        let words = refusal(limits, of_addresses.clone()).await;
        let expected =
            "failed to create filter: Max amount of filters/data_slices reached, only 0 allowed";
        assert!(words.contains(expected), "{words}");
    }
}

#[tokio::test]
async fn transaction_filters_are_bounded_in_each_list_and_may_have_to_restrict_something() {
    let served = Served::start().await;
    let limits = FilterLimits {
        transactions_any: false,
        account_include_max: Some(2),
        account_exclude_max: Some(1),
        account_required_max: Some(0),
        ..FilterLimits::default()
    };
    served.server.configure(|settings| settings.limits = limits);
    let asked = |filter: TransactionFilter| Request {
        transactions: BTreeMap::from([("keys".to_owned(), filter)]),
        ..request(1)
    };
    let any = TransactionFilter::default();
    let included = TransactionFilter {
        account_include: vec![key(1), key(2)],
        account_exclude: vec![key(3)],
        ..TransactionFilter::default()
    };
    let excluded = TransactionFilter {
        account_exclude: vec![key(1), key(2)],
        ..TransactionFilter::default()
    };
    let required = TransactionFilter {
        account_required: vec![key(1)],
        ..TransactionFilter::default()
    };
    let without_votes = TransactionFilter {
        votes: Some(false),
        ..TransactionFilter::default()
    };
    for taken in [included, without_votes] {
        drop(served.listening(asked(taken)).await);
    }
    let refused = [
        (
            any,
            "Subscribe on full stream with `any` is not allowed, at least one filter required",
        ),
        (excluded, "Max amount of Pubkeys reached, only 1 allowed"),
        (required, "Max amount of Pubkeys reached, only 0 allowed"),
    ];
    for (filter, words) in refused {
        let error = end(&mut served.open(asked(filter)).await).await;
        assert!(matches!(error, StreamError::Refused(_)), "{error}");
        let words = format!("failed to create filter: {words}");
        assert!(error.to_string().contains(&words), "{error}");
    }
}

#[tokio::test]
async fn names_of_filters_are_bounded() {
    let served = Served::start().await;
    let named = |name: &str| {
        let filter = AccountFilter {
            pubkeys: vec![key(1)],
            ..AccountFilter::default()
        };
        Request {
            accounts: BTreeMap::from([(name.to_owned(), filter)]),
            slots: Some("slot".to_owned()),
            ..Request::default()
        }
    };
    // Longer ones the client does not ask for.
    let longest = "n".repeat(FilterLimits::default().name_max);
    drop(served.listening(named(&longest)).await);
    served
        .server
        .configure(|settings| settings.limits.name_max = 4);
    drop(served.listening(named("name")).await);
    let error = end(&mut served.open(named("names")).await).await;
    assert!(matches!(error, StreamError::Refused(_)), "{error}");
    let words = "failed to create filter: oversized filter name (max allowed size 4), found 5";
    assert!(error.to_string().contains(words), "{error}");
}

#[tokio::test]
async fn a_request_above_the_limit_closes_the_stream_without_a_status() {
    let served = Served::start().await;
    let mut stream = served.listening(request(1)).await;
    let pubkeys = (0..100_000_u64).map(|number| address(&number.to_string()));
    let filter = AccountFilter {
        pubkeys: pubkeys.collect(),
        ..AccountFilter::default()
    };
    let large = Request {
        accounts: BTreeMap::from([("keys".to_owned(), filter)]),
        ..request(2)
    };
    soon(stream.replace(large)).await.expect("sent");
    assert_eq!(end(&mut stream).await, StreamError::Closed);
}

#[tokio::test]
async fn a_subscriber_behind_the_ring_has_lagged() {
    let served = Served::start().await;
    served.server.configure(|settings| settings.ring = 3);
    served.server.hold_replays(true);
    let mut stream = served.open(from(100)).await;
    while served.server.requests().is_empty() {
        tokio::task::yield_now().await;
    }
    served.pass(101);
    served.server.hold_replays(false);
    let error = end(&mut stream).await;
    assert!(matches!(error, StreamError::Lagged(_)), "{error}");
    assert!(
        error
            .to_string()
            .contains("lagged to receive geyser messages")
    );
}

#[tokio::test]
async fn a_client_that_does_not_read_has_lagged() {
    let served = Served::with_queue(4).await;
    let mut stream = served.listening(request(1)).await;
    // More than the client's buffers and the queue hold.
    let large = Content::Broken {
        owner: program(),
        data: Bytes::from(vec![0; 1 << 20]),
    };
    for _ in 0..64 {
        let write = served
            .chain
            .lock()
            .tree
            .write(101, address("a"), large.clone());
        served.chain.report(Message::write(101, &write));
    }
    let error = end(&mut stream).await;
    assert!(matches!(error, StreamError::Lagged(_)), "{error}");
    assert!(error.to_string().contains("lagged to send an update"));
}
