//! Responses to requests.

use serde_json::Value;
use thalweg_daemon::api::routes;
use thalweg_http::route::Method;

use crate::api::fixture::Fixture;

fn names<'a>(list: &'a Value, field: &str) -> Vec<&'a str> {
    list.as_array().unwrap().iter().map(|item| item[field].as_str().unwrap()).collect()
}

#[test]
fn links_are_sorted_by_port_with_peers_and_bounds() {
    let fixture = Fixture::new();
    let links = fixture.client.get("/v1/links").json();
    assert_eq!(names(&links["responses"], "collector"), ["tor0", "quiet"]);
    let links = &links["links"];
    assert_eq!(names(links, "link")[..3], ["tor0:p0:in", "tor0:p0:out", "tor0:p1:in"]);
    let link = &links[7];
    assert_eq!((&link["link"], &link["peer"]), (&"tor0:p3:out".into(), &"h3".into()));
    assert_eq!(link["capacity_bps"], 10_000_000_000_u64);
    // An infinite upper bound is omitted.
    assert_eq!(link["bounds"], "lower_bound");
    assert_eq!((&link["rate_lower_bps"], &link["rate_upper_bps"]), (&9.0e9.into(), &Value::Null));
    assert_eq!(link["changed"], "2026-11-21T22:16:16.495499720Z");
    let quiet = fixture.client.get("/v1/links?collector=quiet").json();
    assert_eq!(quiet["links"].as_array().unwrap().len(), 0);
    assert_eq!(fixture.client.get("/v1/links?collector=nobody").problem(), (404, "not_found".into()));
}

#[test]
fn flows_are_sorted_by_rate_and_limited() {
    let fixture = Fixture::new();
    let flows = fixture.client.get("/v1/flows?limit=3").json();
    assert_eq!(flows["total"], 100);
    let destinations: Vec<_> =
        flows["flows"].as_array().unwrap().iter().map(|flow| &flow["flow"]["dst"]).collect();
    assert_eq!(destinations, ["10.0.1.99", "10.0.1.98", "10.0.1.97"]);
    assert_eq!(flows["flows"][0]["key"], "tcp 10.0.0.1:443 > 10.0.1.99:51000");
    assert_eq!(flows["flows"][0]["output"], "tor0:p3:out");
    let all = fixture.client.get("/v1/flows?limit=1000").json();
    let flows = all["flows"].as_array().unwrap();
    assert_eq!(flows.len(), 100);
    assert_eq!(flows[99]["rate_bps"], Value::Null, "a flow without a rate comes last");
    assert_eq!(fixture.client.get("/v1/flows?limit=10001").problem(), (400, "bad_parameter".into()));
}

#[test]
fn a_filter_selects_flows_before_the_limit() {
    let fixture = Fixture::new();
    let get = |path: &str| fixture.client.get(path).json();
    let flows = get("/v1/flows?limit=2&filter=dst%20net%2010.0.1.0/29%20and%20src%20port%20443");
    assert_eq!(flows["total"], 8);
    assert_eq!(
        names(&flows["flows"], "key"),
        ["tcp 10.0.0.1:443 > 10.0.1.7:51000", "tcp 10.0.0.1:443 > 10.0.1.6:51000"]
    );
    let cheetah = &get("/v1/cheetahs?limit=1")["flows"][0];
    let address = cheetah["flow"]["dst"].as_str().unwrap();
    let found = get(&format!("/v1/cheetahs?filter=dst%20ip%20{address}"));
    assert_eq!((&found["total"], &found["flows"][0]["key"]), (&1.into(), &cheetah["key"]));
    assert_eq!(get("/v1/cheetahs?filter=not%20cheetah")["total"], 0);
    let on_link = get("/v1/links/tor0:p3:out/flows?filter=bps%20%3E%200");
    let all = get("/v1/links/tor0:p3:out/flows?limit=1000");
    let with_rate =
        all["flows"].as_array().unwrap().iter().filter(|flow| !flow["rate_bps"].is_null()).count();
    assert_eq!(on_link["total"], with_rate);
    assert_eq!(get("/v1/flows?filter=")["total"], 100, "the empty filter selects every flow");
}

#[test]
fn an_invalid_filter_is_refused_with_its_column() {
    let fixture = Fixture::new();
    for (filter, detail) in [
        ("port%20https", "filter: column 6: expected a number, found 'https'"),
        (
            "port%2080%20and%20as%205",
            "filter: column 13: 'as' is not known here; known: any, ipv4, ipv6, host, net, port",
        ),
        ("flags%20S", "filter: column 1: 'flags' is not known here"),
    ] {
        for path in ["/v1/flows", "/v1/cheetahs", "/v1/links/tor0:p3:out/flows"] {
            let answer = fixture.client.get(&format!("{path}?filter={filter}"));
            assert_eq!(answer.problem(), (400, "bad_parameter".into()));
            let found = answer.json()["detail"].as_str().unwrap().to_owned();
            assert!(found.starts_with(detail), "{found}");
        }
    }
}

#[test]
fn a_flow_is_found_by_its_key() {
    let fixture = Fixture::new();
    let flows = fixture.client.get("/v1/flows?limit=2").json();
    let key = flows["flows"][1]["key"].as_str().unwrap();
    let path = format!("/v1/flows/{}", key.replace(' ', "%20").replace('>', "%3E"));
    let found = fixture.client.get(&path).json();
    assert_eq!(found["flows"][0], flows["flows"][1]);
    let reverse = "/v1/flows/tcp%2010.0.1.98:51000%20%3E%2010.0.0.1:443";
    assert_eq!(fixture.client.get(reverse).problem(), (404, "not_found".into()));
    let answer = fixture.client.get("/v1/flows/tcp%2010.0.0.1");
    assert_eq!(answer.problem(), (400, "bad_parameter".into()));
    assert!(answer.text.contains("expected e.g."), "{}", answer.text);
}

#[test]
fn flows_on_a_link_have_its_port() {
    let fixture = Fixture::new();
    let total = |path: &str| fixture.client.get(path).json()["total"].clone();
    assert_eq!(total("/v1/links/tor0:p3:out/flows"), 50);
    assert_eq!(total("/v1/links/tor0:p0:in/flows"), 66);
    assert_eq!(total("/v1/links/tor0:p1:in/flows"), 0);
    for (link, status) in [("tor0:p4:out", 404), ("tor9:p0:in", 404), ("tor0", 400), ("tor0:p0:up", 400)] {
        assert_eq!(fixture.client.get(&format!("/v1/links/{link}/flows")).problem().0, status, "{link}");
    }
}

#[test]
fn cheetahs_lists_only_cheetah_flows() {
    let cheetahs = Fixture::new().client.get("/v1/cheetahs?limit=4").json();
    assert_eq!(cheetahs["total"], 10);
    assert!(cheetahs["flows"].as_array().unwrap().iter().all(|flow| flow["cheetah"] == true));
}

#[test]
fn an_unresponsive_collector_is_named() {
    use thalweg_daemon::collectors::{CollectorHandle, Description};

    let fixture = Fixture::new();
    let description =
        Description { name: "dead".into(), ..fixture.daemon.collectors()[0].description().clone() };
    let (dead, mailbox) = CollectorHandle::new(description);
    fixture.daemon.set_collectors(fixture.daemon.collectors().into_iter().chain([dead]).collect());
    let flows = fixture.client.get("/v1/flows?limit=1").json();
    let responses = flows["responses"].as_array().unwrap();
    assert_eq!(responses[2]["collector"], "dead");
    assert_eq!(responses[2]["error"], "the collector did not reply in time");
    assert_eq!(responses[0]["error"], Value::Null);
    assert_eq!(fixture.client.get("/v1/flows?collector=dead").problem(), (503, "unavailable".into()));
    assert_eq!(fixture.client.get("/readyz").status, 503, "a collector is starting");
    let metrics = fixture.client.get("/metrics").text;
    let late = metrics
        .lines()
        .find(|line| line.starts_with("thalweg_collector_requests_timed_out_total{collector=\"dead\"}"));
    assert_eq!(late.unwrap().rsplit(' ').next(), Some("3"));
    drop(mailbox);
}

#[test]
fn health_and_readiness_follow_the_daemon() {
    let fixture = Fixture::new();
    assert_eq!(fixture.client.get("/healthz").json()["name"], "thalweg");
    assert_eq!(fixture.client.get("/readyz").status, 200);
    fixture.daemon.stop();
    let ready = fixture.client.get("/readyz");
    assert_eq!((ready.status, ready.json()["status"].clone()), (503, "stopping".into()));
    assert_eq!(fixture.client.get("/healthz").status, 200);
}

#[test]
fn a_topology_can_be_put_back_as_json_and_toml() {
    let fixture = Fixture::new();
    let got = fixture.client.get("/v1/topology").json();
    assert_eq!(got["version"], 1);
    let json = [("content-type", "application/json; charset=utf-8")];
    let put = fixture.client.send("PUT", "/v1/topology", &json, got["network"].to_string().as_bytes());
    assert_eq!((put.status, put.json()["version"].clone()), (200, 2.into()), "{}", put.text);
    assert_eq!(
        put.json()["valid_from"],
        "2026-11-21T22:16:16.495499720Z",
        "packet time, as no collector is live"
    );
    let toml = fixture.client.get_with("/v1/topology", &[("accept", "application/toml")]);
    assert_eq!(toml.headers["content-type"], "application/toml");
    let type_toml = [("content-type", "application/toml")];
    let put = fixture.client.send("PUT", "/v1/topology", &type_toml, toml.text.as_bytes());
    assert_eq!(put.status, 200, "{}", put.text);
    assert_eq!(fixture.client.get("/v1/topology").json()["network"], got["network"]);
}

#[test]
fn an_invalid_topology_is_refused_with_lines() {
    let fixture = Fixture::new();
    let put = |media_type: &str, body: &str| {
        fixture.client.send("PUT", "/v1/topology", &[("content-type", media_type)], body.as_bytes())
    };
    let wrong = put(
        "application/toml",
        "[forwarding]\nkind = \"ecmp\"\nseed = 1\n[[router]]\nname = \"tor0\"\n[[endpoint]]\nname = \"h0\"\nrouter = \"tor1\"\nrats = 1\n",
    );
    assert_eq!(wrong.problem(), (400, "bad_body".into()));
    let errors = wrong.json()["errors"].clone();
    let lines: Vec<_> =
        errors.as_array().unwrap().iter().map(|error| error["line"].as_u64().unwrap()).collect();
    assert_eq!(lines, [8, 9], "{errors}");
    assert!(errors[0]["message"].as_str().unwrap().contains("tor0"), "{errors}");
    assert_eq!(put("application/json", "{").problem(), (400, "bad_body".into()));
    assert_eq!(put("text/plain", "x").problem(), (415, "unsupported_media_type".into()));
    // A network without the monitored switches.
    let other = "[forwarding]\nkind = \"ecmp\"\nseed = 1\n[[router]]\nname = \"other\"\n[[endpoint]]\nname = \"h0\"\nrouter = \"other\"\n";
    assert_eq!(put("application/toml", other).problem(), (409, "conflict".into()));
    assert_eq!(fixture.client.get("/v1/topology").json()["version"], 1);
}

#[test]
fn unknown_paths_and_methods_are_refused() {
    let fixture = Fixture::new();
    assert_eq!(fixture.client.get("/nothing").problem(), (404, "not_found".into()));
    let refused = fixture.client.send("POST", "/v1/topology", &[], b"");
    assert_eq!(refused.problem(), (405, "method_not_allowed".into()));
    assert_eq!(refused.headers["allow"], "GET, PUT");
    assert_eq!(fixture.client.delete("/v1/flows").headers["allow"], "GET");
}

#[test]
fn unknown_names_in_paths_are_not_found() {
    let fixture = Fixture::new();
    for path in
        ["/v1", "/v1/links/", "/v1/links/x", "/v1/flows/", "/v1/flows/a/b", "//v1/links", "/v1/flows/%ff"]
    {
        let answer = fixture.client.get(path);
        assert_eq!(answer.problem(), (404, "not_found".into()), "{path}");
        assert!(answer.text.contains("unknown path; see /v1/openapi.json"), "{}", answer.text);
    }
}

#[test]
fn every_route_matches_its_path() {
    let fixture = Fixture::with(|options| options.limits.request_burst = 1_000);
    for route in routes::table() {
        let parameters = (route.parameters)(&mut Default::default());
        let in_path = parameters.iter().filter(|parameter| parameter.is_in_path);
        let path = in_path.fold(route.path.to_owned(), |path, parameter| {
            path.replace(&format!("{{{}}}", parameter.name), &parameter.example)
        });
        let answer = match route.method {
            // They do not end.
            Method::Get if ["/v1/events", "/v1/live"].contains(&path.as_str()) => continue,
            Method::Get => fixture.client.get(&path),
            Method::Delete => fixture.client.delete(&path),
            method => fixture.client.send(&method.to_string(), &path, &[], b""),
        };
        let is_found = answer.status != 405 && !answer.text.contains("unknown path");
        assert!(is_found, "{} {path}: {}", route.method, answer.text);
    }
}

#[test]
fn an_encoded_flow_key_is_read_from_the_path() {
    let fixture = Fixture::new();
    for path in [
        "/v1/flows/tcp%2010.0.0.1:443%20%3E%2010.0.1.98:51000",
        "/v1/flows/tcp%2010.0.0.1%3a443%20%3E%2010.0.1.98%3A51000",
    ] {
        let found = fixture.client.get(path).json();
        assert_eq!(found["flows"][0]["key"], "tcp 10.0.0.1:443 > 10.0.1.98:51000", "{path}");
    }
    let path = format!("/v1/links/{}/flows", thalweg_api::client::segment("stör 7/%p:p0:in"));
    let detail = fixture.client.get(&path).json()["detail"].clone();
    assert_eq!(detail, "no node \"stör 7/%p\" in the topology");
}

#[test]
fn an_unknown_parameter_is_refused_with_the_known_ones() {
    let fixture = Fixture::new();
    let detail = |path: &str| {
        let answer = fixture.client.get(path);
        assert_eq!(answer.problem(), (400, "bad_parameter".into()), "{path}");
        answer.json()["detail"].as_str().unwrap().to_owned()
    };
    assert_eq!(
        detail("/v1/flows?tpo=3"),
        "unknown parameter \"tpo\": expected limit, collector, filter, sort, order, offset"
    );
    assert_eq!(detail("/v1/collectors?x"), "unknown parameter \"x\": this path has no parameters");
    assert_eq!(detail("/v1/flows?limit=3&limit=4"), "duplicate parameter limit");
    let key = "/v1/flows/tcp%2010.0.0.1:443%20%3E%2010.0.1.98:51000";
    assert!(
        detail(&format!("{key}?key=y")).starts_with("unknown"),
        "a parameter of the path is none of the query"
    );
    assert!(detail("/v1/flows?limit=%zz").contains("limit"));
}

#[test]
fn metrics_include_collector_counters() {
    let fixture = Fixture::new();
    let page = fixture.client.get("/metrics");
    assert!(page.headers["content-type"].to_str().unwrap().starts_with("text/plain; version=0.0.4"));
    for line in [
        "thalweg_frames_total{collector=\"tor0\"} 1000",
        "thalweg_kernel_drops_total{collector=\"tor0\"} 7",
        "thalweg_collector_state{collector=\"tor0\",switch=\"tor0\",state=\"running\"} 1",
        "thalweg_link_utilisation_ratio{collector=\"tor0\",switch=\"tor0\",port=\"p3\",direction=\"out\"} 0.91",
        "thalweg_sampling_ratio{collector=\"tor0\"} 0.25",
        "thalweg_network_version 1",
    ] {
        assert!(page.text.lines().any(|found| found == line), "{line} is not in\n{}", page.text);
    }
    let mut seen = std::collections::BTreeSet::new();
    for line in page.text.lines().filter(|line| !line.starts_with('#')) {
        let (name, value) = line.rsplit_once(' ').unwrap();
        assert!(value.parse::<f64>().is_ok(), "{line}");
        assert!(seen.insert(name), "{name} is there twice");
    }
}
