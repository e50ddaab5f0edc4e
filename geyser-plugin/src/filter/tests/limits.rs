//! Limits of the configuration, each at its bound and one above it.

use yellowstone_grpc_proto::geyser::SubscribeRequestFilterBlocks;

use super::*;

/// What a server with these limits says to a request; `None` when it serves it.
fn said(limits: &str, request: &SubscribeRequest) -> Option<String> {
    let config = configured(&format!("filter_limits: {{{limits}}}"));
    let refused = Filter::compile(request, &config).err();
    refused.map(|error| error.to_string())
}

fn by_address(accounts_listed: &[u8], owners: &[u8]) -> SubscribeRequest {
    accounts(SubscribeRequestFilterAccounts {
        account: accounts_listed.iter().copied().map(text).collect(),
        owner: owners.iter().copied().map(text).collect(),
        ..SubscribeRequestFilterAccounts::default()
    })
}

fn by_include(include: &[u8]) -> SubscribeRequestFilterTransactions {
    SubscribeRequestFilterTransactions {
        account_include: include.iter().copied().map(text).collect(),
        ..SubscribeRequestFilterTransactions::default()
    }
}

const ANY: &str =
    "Subscribe on full stream with `any` is not allowed, at least one filter required";

#[test]
fn the_number_of_filters_of_each_kind_is_bounded() {
    let two = || ["x", "y"].map(str::to_owned);
    let mut requests: [(&str, SubscribeRequest); 7] = Default::default();
    let kinds = [
        "accounts",
        "slots",
        "transactions",
        "transactions_status",
        "blocks",
        "blocks_meta",
        "entries",
    ];
    for ((kind, request), name) in requests.iter_mut().zip(kinds) {
        *kind = name;
        for key in two() {
            match name {
                "accounts" => drop(request.accounts.insert(key, Default::default())),
                "slots" => drop(request.slots.insert(key, Default::default())),
                "transactions" => drop(request.transactions.insert(key, Default::default())),
                "blocks" => drop(request.blocks.insert(key, Default::default())),
                "blocks_meta" => drop(request.blocks_meta.insert(key, Default::default())),
                "entries" => drop(request.entry.insert(key, Default::default())),
                _ => drop(request.transactions_status.insert(key, Default::default())),
            }
        }
    }
    for (kind, request) in requests {
        assert_eq!(said(&format!("{kind}: {{max: 2}}"), &request), None);
        assert_eq!(
            said(&format!("{kind}: {{max: 1}}"), &request).as_deref(),
            Some("Max amount of filters/data_slices reached, only 1 allowed"),
            "{kind}"
        );
    }
}

#[test]
fn accounts_and_owners_are_bounded_and_may_be_rejected() {
    let limits = format!(
        "accounts: {{account_max: 2, account_reject: [\"{}\"], owner_max: 1, owner_reject: [\"{}\"]}}",
        text(8),
        text(9)
    );
    let said = |listed: &[u8], owners: &[u8]| said(&limits, &by_address(listed, owners));
    assert_eq!(said(&[1, 2], &[3]), None);
    let too_many = "Max amount of Pubkeys reached, only";
    assert_eq!(said(&[1, 2, 3], &[]), Some(format!("{too_many} 2 allowed")));
    assert_eq!(said(&[], &[1, 2]), Some(format!("{too_many} 1 allowed")));
    let rejected = |byte| Some(format!("Pubkey {} in filters is not allowed", text(byte)));
    assert_eq!(said(&[1, 8], &[]), rejected(8));
    assert_eq!(said(&[], &[9]), rejected(9));
    // Each list has its own.
    assert_eq!(said(&[9], &[8]), None);
}

#[test]
fn a_filter_may_have_to_restrict_something() {
    let closed = "accounts: {any: false}, transactions: {any: false}, \
                  blocks: {account_include_any: false}";
    let said = |request: &SubscribeRequest| said(closed, request);
    assert_eq!(said(&by_address(&[], &[])).as_deref(), Some(ANY));
    assert_eq!(said(&by_address(&[1], &[])), None);
    // A condition on the data alone still means every account.
    let sized = accounts(condition(Kind::Datasize(165)));
    assert_eq!(said(&sized).as_deref(), Some(ANY));
    let transactions = |filter| SubscribeRequest {
        transactions: [("t".to_owned(), filter)].into(),
        ..SubscribeRequest::default()
    };
    assert_eq!(said(&transactions(by_include(&[]))).as_deref(), Some(ANY));
    assert_eq!(said(&transactions(by_include(&[1]))), None);
    let blocks = |account_include| SubscribeRequest {
        blocks: [(
            "b".to_owned(),
            SubscribeRequestFilterBlocks {
                account_include,
                ..SubscribeRequestFilterBlocks::default()
            },
        )]
        .into(),
        ..SubscribeRequest::default()
    };
    assert_eq!(said(&blocks(Vec::new())).as_deref(), Some(ANY));
    assert_eq!(said(&blocks(vec![text(1)])), None);
}

#[test]
fn both_kinds_of_transaction_filters_are_bounded_by_limits_of_their_own() {
    let limits = format!(
        "transactions: {{account_include_max: 1, account_exclude_max: 0, account_required_max: 0}}, \
         transactions_status: {{account_include_reject: [\"{}\"]}}",
        text(8)
    );
    let full = |filter| SubscribeRequest {
        transactions: [("t".to_owned(), filter)].into(),
        ..SubscribeRequest::default()
    };
    let status = |filter| SubscribeRequest {
        transactions_status: [("t".to_owned(), filter)].into(),
        ..SubscribeRequest::default()
    };
    assert_eq!(said(&limits, &full(by_include(&[8]))), None);
    let one = Some("Max amount of Pubkeys reached, only 1 allowed".to_owned());
    assert_eq!(said(&limits, &full(by_include(&[1, 2]))), one);
    assert_eq!(said(&limits, &status(by_include(&[1, 2]))), None);
    let rejected = format!("Pubkey {} in filters is not allowed", text(8));
    assert_eq!(said(&limits, &status(by_include(&[8]))), Some(rejected));
    let none = Some("Max amount of Pubkeys reached, only 0 allowed".to_owned());
    let exclude = SubscribeRequestFilterTransactions {
        account_exclude: vec![text(1)],
        ..by_include(&[])
    };
    assert_eq!(said(&limits, &full(exclude)), none);
    let required = SubscribeRequestFilterTransactions {
        account_required: vec![text(1)],
        ..by_include(&[])
    };
    assert_eq!(said(&limits, &full(required)), none);
}

#[test]
fn content_of_blocks_may_be_refused() {
    let request = |transactions, accounts, entries| SubscribeRequest {
        blocks: [(
            "b".to_owned(),
            SubscribeRequestFilterBlocks {
                include_transactions: transactions,
                include_accounts: accounts,
                include_entries: entries,
                ..SubscribeRequestFilterBlocks::default()
            },
        )]
        .into(),
        ..SubscribeRequest::default()
    };
    let closed =
        "blocks: {include_transactions: false, include_accounts: false, include_entries: false}";
    assert_eq!(said(closed, &request(Some(false), None, None)), None);
    let refused = |request| said(closed, &request);
    let name = |field: &str| Some(format!("`{field}` is not allowed"));
    // Transactions are included unless switched off.
    assert_eq!(
        refused(request(None, None, None)),
        name("include_transactions")
    );
    assert_eq!(
        refused(request(Some(false), Some(true), None)),
        name("include_accounts")
    );
    assert_eq!(
        refused(request(Some(false), None, Some(true))),
        name("include_entries")
    );
}

#[test]
fn slices_names_and_cuckoo_filters_are_bounded() {
    let mut request = by_address(&[1], &[]);
    request.accounts_data_slice = [(0, 1), (1, 1)]
        .map(|(offset, length)| SubscribeRequestAccountsDataSlice { offset, length })
        .into();
    assert_eq!(said("accounts: {data_slice_max: 2}", &request), None);
    assert!(said("accounts: {data_slice_max: 1}", &request).is_some());

    let named = configured("filter_name_size_limit: 3");
    let mut request = SubscribeRequest::default();
    request.slots.insert("abc".to_owned(), Default::default());
    assert!(Filter::compile(&request, &named).is_ok());
    request.slots.insert("abcd".to_owned(), Default::default());
    let error = Filter::compile(&request, &named).unwrap_err();
    assert_eq!(error, FilterError::Name { bytes: 4, max: 3 });

    let cuckoo = accounts(SubscribeRequestFilterAccounts {
        cuckoo_accounts_filter: Some(yellowstone_grpc_proto::geyser::CuckooFilter {
            data: vec![0; 16],
            bucket_count: 2,
            entries_per_bucket: 4,
            fingerprint_bits: 16,
            ..Default::default()
        }),
        ..SubscribeRequestFilterAccounts::default()
    });
    assert_eq!(said("accounts: {cuckoo_max_size: 16}", &cuckoo), None);
    let refused = said("accounts: {cuckoo_max_size: 15}", &cuckoo).unwrap();
    assert!(refused.contains("16 bytes"), "{refused}");
}

#[test]
fn a_mistake_in_the_limits_fails_the_start() {
    let parse = |limits: &str| {
        let text = format!(
            r#"{{libpath: "l", grpc: {{address: "127.0.0.1:1", filter_limits: {{{limits}}}}}}}"#
        );
        Config::parse(&text).unwrap_err().to_string()
    };
    assert!(parse("account: {max: 1}").contains("account"));
    assert!(parse("slots: {maximum: 1}").contains("maximum"));
    assert!(parse("accounts: {owner_reject: [\"l0\"]}").contains("invalid address `l0`"));
}
