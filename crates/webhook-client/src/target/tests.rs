//! Targets: addresses in every spelling, and URLs that are refused with their reason.

use super::*;

fn fault(url: &str) -> TargetFault {
    check(url, Reach::PublicAndLoopback).expect_err(url)
}

#[test]
fn literal_addresses_are_judged_in_every_spelling() {
    for url in [
        "https://127.0.0.1/",
        "https://127.0.0.1:8443/hook",
        "https://127.0.0.1./",
        "https://2130706433/",
        "https://0x7f000001/",
        "https://0x7f.1/",
        "https://0177.0.0.1/",
        "https://017700000001/",
        "https://127.1/",
        "https://127.0.1/",
        "https://1\u{ff12}7.0.0.1/",
        "https://127\u{3002}0.0.1/",
        "https://%31%32%37.0.0.1/",
        "https://0/",
        "https://0.0.0.0/",
        "https://10.0.0.1:8443/",
        "https://0xa9fea9fe/",
        "https://169.254.169.254/latest/meta-data",
        "https://[::]/",
        "https://[::1]/",
        "https://[0:0:0:0:0:0:0:1]/",
        "https://[::127.0.0.1]/",
        "https://[::ffff:127.0.0.1]/",
        "https://[::ffff:7f00:1]/",
        "https://[0:0:0:0:0:ffff:7f00:0001]/",
        "https://[::ffff:0:127.0.0.1]/",
        "https://[2002:7f00:1::]/",
        "https://[2001:0:7f00:1::]/",
        "https://[64:ff9b::a9fe:a9fe]/",
        "https://[64:ff9b::127.0.0.1]/",
        "https://[64:ff9b:1::8.8.8.8]/",
        "https://[fe80::1]/",
        "https://[fd00:ec2::254]/",
        "https://[ff02::1]/",
    ] {
        assert!(
            matches!(fault(url), TargetFault::Address(_)),
            "{url}: {}",
            fault(url)
        );
    }
}

#[test]
fn zone_ids_and_malformed_literals_are_no_urls() {
    for url in [
        "https://[fe80::1%25eth0]/",
        "https://[fe80::1%eth0]/",
        "https://[::1/",
        "https://::1/",
        "https://[127.0.0.1]/",
        "https://256.0.0.1/",
        "https://1.2.3.4.5/",
        "https://0x100000000/",
        "https://",
        "",
    ] {
        assert_eq!(fault(url), TargetFault::NoUrl, "{url}");
    }
}

#[test]
fn schemes_and_credentials_are_judged() {
    let strict = |url| check(url, Reach::Public).expect_err(url);
    assert_eq!(strict("http://example.com/"), TargetFault::PlainHttp);
    assert_eq!(strict("http://127.0.0.1/"), TargetFault::PlainHttp);
    for url in [
        "ftp://example.com/",
        "ws://example.com/",
        "file:///etc/passwd",
    ] {
        assert_eq!(strict(url), TargetFault::Scheme, "{url}");
    }
    for url in [
        "https://user:pass@example.com/",
        "https://user@example.com/",
        "https://:pass@example.com/",
        "https://127.0.0.1@example.com/",
    ] {
        assert_eq!(strict(url), TargetFault::Credentials, "{url}");
    }
}

#[test]
fn plain_http_reaches_loopback_addresses_only() {
    for url in [
        "http://10.0.0.1/",
        "http://169.254.169.254/",
        "http://8.8.8.8/",
        "http://[fd00::1]/",
        "http://0.0.0.0/",
    ] {
        assert!(matches!(fault(url), TargetFault::Address(_)), "{url}");
    }
    for url in [
        "http://127.0.0.1:9000/",
        "http://[::1]/",
        "http://localhost/",
    ] {
        let (_, zone) = check(url, Reach::PublicAndLoopback).expect(url);
        assert_eq!(zone, Zone::Loopback, "{url}");
    }
}

#[test]
fn names_and_public_literals_may_be_called() {
    for url in [
        "https://example.com/hook?token=1",
        "https://8.8.8.8/",
        "https://[2606:4700::1111]:8443/",
        "https://[64:ff9b::8.8.8.8]/",
    ] {
        assert_eq!(
            check(url, Reach::Public).map(|(_, zone)| zone),
            Ok(Zone::Public),
            "{url}"
        );
    }
}

#[test]
fn one_bad_address_refuses_the_name() {
    let parse = |text: &str| text.parse::<IpAddr>().expect("an address");
    let (good, bad) = (parse("8.8.8.8"), parse("10.0.0.1"));
    assert_eq!(Zone::Public.judge(&[good]), Ok(()));
    assert!(Zone::Public.judge(&[good, bad]).is_err());
    assert!(Zone::Public.judge(&[bad, good]).is_err());
    assert!(Zone::Loopback.judge(&[good]).is_err());
}
