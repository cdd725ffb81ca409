// src/live/event_stream.ts
var e = class {
	#e = "";
	#t = "";
	#n = [];
	#r = null;
	#i = 0;
	push(e) {
		let t = [], n = (this.#e + e).split(/\r\n|\n/);
		if (this.#e = n.pop() ?? "", this.#i += e.length, this.#i > 33554432) throw Error("a message of the stream is too long");
		for (let e of n) e === "" ? this.#o(t) : this.#a(e);
		return t;
	}
	#a(e) {
		let t = e.indexOf(":");
		if (t === 0) return;
		let n = t < 0 ? e : e.slice(0, t), r = t < 0 ? "" : e.slice(t + 1).replace(/^ /, "");
		n === "event" ? this.#t = r : n === "data" ? this.#n.push(r) : n === "id" && (this.#r = r);
	}
	#o(e) {
		(this.#n.length > 0 || this.#r !== null) && e.push({
			event: this.#t || "message",
			data: this.#n.join("\n"),
			id: this.#r
		}), this.#t = "", this.#n = [], this.#r = null, this.#i = this.#e.length;
	}
};
async function t(t, n) {
	let r = t.getReader(), i = new TextDecoder(), a = new e();
	try {
		for (;;) {
			let { done: e, value: t } = await r.read();
			if (e) return;
			n(a.push(i.decode(t, { stream: !0 })));
		}
	} finally {
		await r.cancel().catch(() => void 0);
	}
}
// src/live/source.ts
var n = 3500, r = 12e3, i = [250, 5e3], a = 9e4, o = class {
	url;
	#e = /* @__PURE__ */ new Map();
	#t = null;
	#n = { state: "connecting" };
	#r = null;
	#i = null;
	#a = 0;
	#o = 0;
	#s = "0";
	#c = !0;
	#l = -1;
	#u = [];
	#d = /* @__PURE__ */ new Int16Array();
	#f = 0;
	#p = null;
	#m = [];
	constructor(e) {
		this.url = e, setInterval(() => this.#k(), 500);
	}
	add(e) {
		let t = {}, n = {
			send: e,
			isVisible: !0,
			heard: Date.now()
		};
		return (e) => {
			n.heard = Date.now(), !this.#e.has(t) && e.kind !== "bye" && (this.#e.set(t, n), this.#_(n)), this.#h(t, n, e);
		};
	}
	#h(e, t, n) {
		switch (n.kind) {
			case "hello":
				this.#t === null && n.token !== null ? this.#y(n.token) : t.send({
					kind: "token",
					token: this.#t
				}), this.#C();
				break;
			case "token":
				this.#y(n.token), this.#C();
				break;
			case "visible":
				t.isVisible = n.visible, t.isVisible && this.#_(t);
				break;
			case "alive": break;
			case "bye": this.#g(e);
		}
	}
	#g(e) {
		this.#e.delete(e), this.#e.size === 0 && this.#S();
	}
	#_(e) {
		e.send({
			kind: "connection",
			connection: this.#n
		}), this.#u.length > 0 && e.send({
			kind: "links",
			links: this.#u
		}), this.#d.length > 0 && e.send({
			kind: "loads",
			loads: this.#d,
			time: this.#f
		}), this.#p !== null && e.send({
			kind: "status",
			status: this.#p
		}), e.send({
			kind: "events",
			events: this.#m
		});
	}
	#v(e, t = !1) {
		for (let n of this.#e.values()) (n.isVisible || !t) && n.send(e);
	}
	#y(e) {
		this.#t = e, this.#b(), this.#S(), this.#v({
			kind: "token",
			token: e
		});
	}
	#b() {
		this.#l = -1, this.#u = [], this.#d = /* @__PURE__ */ new Int16Array(), this.#p = null, this.#m = [], this.#s = "0", this.#c = !0;
	}
	#x(e) {
		this.#n = e, this.#v({
			kind: "connection",
			connection: e
		});
	}
	#S() {
		this.#i !== null && clearTimeout(this.#i), this.#i = null, this.#r?.abort(), this.#r = null;
	}
	#C() {
		if (this.#r !== null || this.#i !== null) return;
		let e = new AbortController();
		this.#r = e, this.#o = Date.now(), this.#n.state !== "lost" && this.#x({ state: "connecting" }), this.#w(e).then(() => this.#T(e, "The daemon closed the connection."), (t) => this.#T(e, t instanceof s ? t : "The daemon does not answer."));
	}
	async #w(e) {
		let n = { Accept: "text/event-stream" };
		this.#t !== null && (n.Authorization = `Bearer ${this.#t}`);
		let r = `${this.url}?after=${encodeURIComponent(this.#s)}`, i = {
			headers: n,
			signal: e.signal,
			cache: "no-store",
			credentials: "omit"
		}, a = await fetch(r, i);
		if (!a.ok || a.body === null) throw await c(a);
		this.#o = Date.now(), await t(a.body, (t) => {
			this.#r === e && this.#E(t);
		});
	}
	#T(e, t) {
		if (this.#r !== e) return;
		if (this.#r = null, t instanceof s && (t.status === 401 || t.status === 403)) {
			this.#b(), this.#x({
				state: "unauthorised",
				reason: t.message
			});
			return;
		}
		let [n, r] = i, a = Math.min(n * 2 ** this.#a, r) * (.75 + Math.random() / 2), o = Math.max(a, t instanceof s ? t.retryAfterMs : 0);
		this.#a += 1, this.#x({
			state: "lost",
			reason: t instanceof s ? t.message : t,
			retryAt: Date.now() + o
		}), this.#i = setTimeout(() => {
			this.#i = null, this.#e.size > 0 && this.#C();
		}, o);
	}
	#E(e) {
		this.#o = Date.now(), this.#n.state !== "open" && (this.#a = 0, this.#x({ state: "open" }));
		let t = [];
		for (let n of e) n.id !== null && (this.#s = n.id), n.data !== "" && this.#D(n, t);
		t.length > 0 && (this.#m = [...this.#m, ...t].slice(-2e3), this.#v({
			kind: "events",
			events: t
		}));
	}
	#D({ event: e, data: t }, n) {
		let r = JSON.parse(t);
		switch (e) {
			case "links": {
				let { list: e, links: t } = r;
				[this.#l, this.#u, this.#d] = [
					e,
					t,
					new Int16Array(t.length).fill(-1)
				], this.#v({
					kind: "links",
					links: t
				});
				break;
			}
			case "loads":
				this.#O(r);
				break;
			case "status":
				this.#p = r, this.#c = !1, this.#v({
					kind: "status",
					status: this.#p
				});
				break;
			case "lost":
				if (this.#c) break;
				this.#v({
					kind: "gap",
					count: r.count ?? null
				});
				break;
			default: n.push({
				event: r,
				at: this.#c ? 0 : Date.now()
			});
		}
	}
	#O({ list: e, time: t, loads: n, changed: r }) {
		if (e === this.#l) {
			n && this.#d.set(n.slice(0, this.#d.length));
			for (let e = 0; r && e + 1 < r.length; e += 2) this.#d[r[e]] = r[e + 1];
			this.#f = Date.parse(t), this.#v({
				kind: "loads",
				loads: this.#d,
				time: this.#f
			}, !0);
		}
	}
	#k() {
		let e = Date.now();
		for (let [t, n] of this.#e) e - n.heard > a && this.#g(t);
		if (this.#r === null) return;
		let t = e - this.#o;
		t > r ? (this.#r.abort(), this.#T(this.#r, "The daemon has sent nothing for some seconds.")) : t > n && this.#n.state === "open" && this.#x({ state: "silent" });
	}
}, s = class extends Error {
	status;
	retryAfterMs;
	constructor(e, t, n) {
		super(e), this.status = t, this.retryAfterMs = n;
	}
};
async function c(e) {
	let t = Number(e.headers.get("Retry-After") ?? 0) * 1e3;
	return new s((await e.json().catch(() => ({}))).detail ?? `The daemon answered with status ${e.status}.`, e.status, t);
}
// src/live/worker.ts
var l = new o("/v1/live");
globalThis.onconnect = (e) => {
	let t = e.ports[0];
	if (t === void 0) return;
	let n = l.add((e) => t.postMessage(e));
	t.onmessage = (e) => n(e.data);
};
