//! Addresses: every special range is refused, public ones are not.

use super::*;

fn refused(text: &str) -> bool {
    refusal(text.parse().expect("an address")).is_some()
}

#[test]
fn every_special_range_is_refused_from_its_first_to_its_last_address() {
    for (first, last) in [
        ("0.0.0.0", "0.255.255.255"),
        ("10.0.0.0", "10.255.255.255"),
        ("100.64.0.0", "100.127.255.255"),
        ("127.0.0.0", "127.255.255.255"),
        ("169.254.0.0", "169.254.255.255"),
        ("172.16.0.0", "172.31.255.255"),
        ("192.0.0.0", "192.0.0.255"),
        ("192.0.2.0", "192.0.2.255"),
        ("192.88.99.0", "192.88.99.255"),
        ("192.168.0.0", "192.168.255.255"),
        ("198.18.0.0", "198.19.255.255"),
        ("198.51.100.0", "198.51.100.255"),
        ("203.0.113.0", "203.0.113.255"),
        ("224.0.0.0", "239.255.255.255"),
        ("240.0.0.0", "255.255.255.255"),
        ("::", "ff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
        ("64:ff9b:1::", "64:ff9b:1:ffff:ffff:ffff:ffff:ffff"),
        ("100::", "100::ffff:ffff:ffff:ffff"),
        ("2001::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff"),
        ("2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff"),
        ("2002::", "2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
        ("3fff::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff"),
        ("5f00::", "5f00:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
        ("fc00::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
        ("fe80::", "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
        ("fec0::", "feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
        ("ff00::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
    ] {
        assert!(refused(first), "{first}");
        assert!(refused(last), "{last}");
    }
}

#[test]
fn the_neighbours_of_the_ranges_are_public() {
    for public in [
        "1.0.0.0",
        "9.255.255.255",
        "11.0.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "126.255.255.255",
        "128.0.0.0",
        "169.253.255.255",
        "169.255.0.0",
        "172.15.255.255",
        "172.32.0.0",
        "191.255.255.255",
        "192.0.1.0",
        "192.0.3.0",
        "192.88.98.255",
        "192.88.100.0",
        "192.167.255.255",
        "192.169.0.0",
        "198.17.255.255",
        "198.20.0.0",
        "198.51.99.255",
        "198.51.101.0",
        "203.0.112.255",
        "203.0.114.0",
        "223.255.255.255",
        "8.8.8.8",
        "2000::",
        "2001:200::",
        "2001:db7:ffff::",
        "2001:db9::",
        "2003::",
        "3ffe::1",
        "3fff:1000::",
        "2606:4700::1111",
    ] {
        assert!(!refused(public), "{public}");
    }
}

#[test]
fn ipv4_in_ipv6_is_refused_in_every_form_whatever_it_embeds() {
    for form in [
        "::ffff:127.0.0.1",
        "::ffff:8.8.8.8",
        "::127.0.0.1",
        "::8.8.8.8",
        "::ffff:0:127.0.0.1",
        "::5efe:127.0.0.1",
        "fe80::5efe:8.8.8.8",
        "2002:7f00:1::",
        "2002:808:808::",
        "2001:0:4136:e378:8000:63bf:3fff:fdd2",
        "::1",
        "::",
        "fd00:ec2::254",
    ] {
        assert!(refused(form), "{form}");
    }
}

#[test]
fn nat64_is_judged_by_what_it_embeds() {
    assert!(refused("64:ff9b::127.0.0.1"));
    assert!(refused("64:ff9b::169.254.169.254"));
    assert!(!refused("64:ff9b::8.8.8.8"));
}

#[test]
fn the_machines_own_addresses_are_refused_in_every_spelling() {
    let own: Own = ["8.8.8.8", "2606:4700::1"]
        .map(|text| text.parse().expect("an address"))
        .into_iter()
        .collect();
    let refused = |text: &str| own.refusal(text.parse().expect("an address")).is_some();
    for text in ["8.8.8.8", "2606:4700::1", "64:ff9b::8.8.8.8"] {
        assert!(refused(text), "{text}");
    }
    for text in ["8.8.4.4", "2606:4700::2", "64:ff9b::8.8.4.4"] {
        assert!(!refused(text), "{text}");
    }
}

#[test]
fn the_machine_knows_its_addresses() {
    let own = Own::read().expect("the system answers");
    assert!(own.refusal(Ipv4Addr::LOCALHOST.into()).is_some());
}
