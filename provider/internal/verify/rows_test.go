package verify

import "testing"

// row makes the setup for one vector.
type row func(t *testing.T, v vector) setup

func one(c Config) row { return func(*testing.T, vector) setup { return setup{verify: []Config{c}} } }

// header is an HMAC over the raw body, in a header.
func header(name, encoding string) row {
	return one(Config{Scheme: SchemeHMAC, Header: name, Encoding: encoding})
}

// dated is an HMAC over `signed` with the time in the same header.
func dated(name, format, separator, signed, tolerance string) row {
	return one(Config{Scheme: SchemeHMAC, Header: name, Format: format, Separator: separator, Signed: []string{signed}, Tolerance: tolerance})
}

func token(t *testing.T, v vector) setup {
	return setup{verify: []Config{{Scheme: SchemeToken, Header: v.param(t, "header")}}}
}

func standard(prefix string) row { return one(Config{Scheme: SchemeStandardWebhooks, Prefix: prefix}) }

// v0 is Slack's way, which others copied.
func v0(signature, timestamp string, challenge *ChallengeConfig) row {
	c := Config{
		Scheme: SchemeHMAC, Header: signature, Format: "v0={signature}",
		Signed: []string{"v0:{timestamp}:{raw}"}, Timestamp: `headers["` + timestamp + `"]`,
	}
	return func(*testing.T, vector) setup { return setup{verify: []Config{c}, challenge: challenge} }
}

// vectorRows says for each provider and scheme of the vectors what a file would say.
func vectorRows() map[string]row {
	rows := map[string]row{}
	for _, group := range []map[string]row{simpleRows(), datedRows(), bodyRows(), keyRows(), challengeRows()} {
		for name, r := range group {
			rows[name] = r
		}
	}
	return rows
}

func simpleRows() map[string]row {
	sha1 := one(Config{Scheme: SchemeHMAC, Hash: "sha1", Header: "X-Hub-Signature", Format: "sha1={signature}"})
	sha256 := one(Config{Scheme: SchemeHMAC, Header: "X-Hub-Signature-256", Format: "sha256={signature}"})
	return map[string]row{
		"kiwify kiwify-hmac-sha1-query":  one(Config{Scheme: SchemeHMAC, Hash: "sha1", Query: "signature"}),
		"pagarme pagarme-v4-hub-sha1":    sha1,
		"github github-sha1":             sha1,
		"intercom intercom-sha1":         sha1,
		"github github-sha256":           sha256,
		"meta meta-sha256":               sha256,
		"shopify shopify-hmac-base64":    header("X-Shopify-Hmac-Sha256", "base64"),
		"lemonsqueezy lemonsqueezy-hex":  header("X-Signature", ""),
		"eduzz eduzz-hex":                header("x-signature", "hex"),
		"razorpay razorpay-hex":          header("X-Razorpay-Signature", ""),
		"coinbase-commerce coinbase-hex": header("X-CC-Webhook-Signature", ""),
		"docusign docusign-base64":       header("X-DocuSign-Signature-*", "base64"),
		"typeform typeform-sha256-base64": one(Config{
			Scheme: SchemeHMAC, Header: "Typeform-Signature", Format: "sha256={signature}", Encoding: "base64",
		}),
		"adyen adyen-header-hmac": one(Config{Scheme: SchemeHMAC, Header: "HmacSignature", Encoding: "base64", SecretAs: "hex"}),
		"pagbank pagbank-sha256": one(Config{
			Scheme: SchemeHash, Header: "x-authenticity-token", Signed: []string{"{secret}-{raw}"},
		}),
		"hubspot hubspot-v1": one(Config{Scheme: SchemeHash, Header: "X-HubSpot-Signature", Signed: []string{"{secret}{raw}"}}),
		"square square-url-body": one(Config{
			Scheme: SchemeHMAC, Header: "x-square-hmacsha256-signature", Encoding: "base64", Signed: []string{"{url}{raw}"},
		}),
		"twilio twilio-sha1-form": one(Config{
			Scheme: SchemeHMAC, Hash: "sha1", Header: "X-Twilio-Signature", Encoding: "base64", Signed: []string{"{url}{sortedForm(raw)}"},
		}),
		"twilio twilio-sha1-bodysha256": one(Config{
			Scheme: SchemeHMAC, Hash: "sha1", Header: "X-Twilio-Signature", Encoding: "base64", Signed: []string{"{url}"},
			Require: `query["bodySHA256"] == sha256(raw)`,
		}),
		"gitlab token-header":     token,
		"asaas token-header":      token,
		"deepgram token-header":   token,
		"assemblyai token-header": token,
		"postmark basic-auth":     one(Config{Scheme: SchemeBasic}),
		"monetizze form-token":    one(Config{Scheme: SchemeToken, Field: "body.chave_unica"}),
	}
}

func datedRows() map[string]row {
	mercado := one(Config{
		Scheme: SchemeHMAC, Header: "x-signature", Format: "ts={timestamp},v1={signature}",
		Signed: []string{
			`{"id:" + query["data.id"] + ";"}{"request-id:" + headers["x-request-id"] + ";"}ts:{timestamp};`,
			`{"id:" + lower(query["data.id"]) + ";"}{"request-id:" + headers["x-request-id"] + ";"}ts:{timestamp};`,
		},
	})
	return map[string]row{
		"stripe stripe-v1":         dated("Stripe-Signature", "t={timestamp},v1={signature}", "", "{timestamp}.{raw}", ""),
		"mux mux-v1":               dated("Mux-Signature", "t={timestamp},v1={signature}", "", "{timestamp}.{raw}", ""),
		"elevenlabs elevenlabs-v0": dated("ElevenLabs-Signature", "t={timestamp},v0={signature}", "", "{timestamp}.{raw}", "30m"),
		"calendly calendly-v1":     dated("Calendly-Webhook-Signature", "t={timestamp},v1={signature}", "", "{timestamp}.{raw}", "3m"),
		"paddle paddle-h1":         dated("Paddle-Signature", "ts={timestamp};h1={signature}", ";", "{timestamp}:{raw}", ""),
		"slack slack-v0":           v0("X-Slack-Signature", "X-Slack-Request-Timestamp", nil),
		"zoom zoom-v0":             v0("x-zm-signature", "x-zm-request-timestamp", nil),
		"linear linear-hex": one(Config{
			Scheme: SchemeHMAC, Header: "Linear-Signature", Tolerance: "60s",
			Timestamp: `first(body.webhookTimestamp, headers["Linear-Timestamp"])`,
		}),
		"hubspot hubspot-v3": one(Config{
			Scheme: SchemeHMAC, Header: "X-HubSpot-Signature-v3", Encoding: "base64",
			Timestamp: `headers["X-HubSpot-Request-Timestamp"]`, Signed: []string{"{method}{url}{raw}{timestamp}"},
		}),
		"mercadopago mercadopago-manifest":           mercado,
		"mercadopago mercadopago-manifest-lowercase": mercado,

		"standard-webhooks standard-webhooks-v1":  standard(""),
		"standard-webhooks standard-webhooks-v1a": standard(""),
		"replicate standard-webhooks-v1":          standard("webhook-"),
		"openai standard-webhooks-v1":             standard(""),
		"gitlab standard-webhooks-v1":             standard(""),
		"svix svix-v1":                            standard("svix-"),
	}
}

// bodyRows are those whose signature or token is in the body, or is made over a
// member of it.
func bodyRows() map[string]row {
	hotmart := func(*testing.T, vector) setup {
		return setup{verify: []Config{
			{Scheme: SchemeToken, Header: "X-HOTMART-HOTTOK"},
			{Scheme: SchemeToken, Field: "body.hottok"},
		}}
	}
	const n = "item.NotificationRequestItem"
	adyen := Config{
		Scheme: SchemeHMAC, Field: n + ".additionalData.hmacSignature", Encoding: "base64", SecretAs: "hex",
		Signed: []string{"{" + n + ".pspReference}:{" + n + ".originalReference}:{" + n + ".merchantAccountCode}:{" + n +
			".merchantReference}:{" + n + ".amount.value}:{" + n + ".amount.currency}:{" + n + ".eventCode}:{" + n + ".success}"},
	}
	braintree := func(t *testing.T, v vector) setup {
		return setup{verify: []Config{{
			Scheme: SchemeHMAC, Hash: "sha1", SecretAs: "sha1", Field: "body.bt_signature", Separator: "&",
			Format: v.param(t, "public_key") + "|{signature}", Signed: []string{"{body.bt_payload}", "{body.bt_payload}\n"},
		}}}
	}
	return map[string]row{
		"hotmart hotmart-hottok-header": hotmart,
		"hotmart hotmart-hottok-body":   hotmart,
		"kie kie-hmac-taskid": one(Config{
			Scheme: SchemeHMAC, Header: "X-Webhook-Signature", Encoding: "base64", Timestamp: `headers["X-Webhook-Timestamp"]`,
			Signed: []string{"{first(body.data.task_id, body.data.taskId)}.{timestamp}"},
		}),
		"adyen adyen-item-hmac": func(*testing.T, vector) setup {
			return setup{verify: []Config{adyen}, split: "body.notificationItems"}
		},
		"mailgun mailgun-body-hmac": one(Config{
			Scheme: SchemeHMAC, Field: "body.signature.signature", Timestamp: "body.signature.timestamp",
			Signed: []string{"{timestamp}{body.signature.token}"},
		}),
		"braintree braintree-sha1": braintree,
	}
}

func keyRows() map[string]row {
	// The key set of the vectors, as it would stand in the file: one for every vector.
	const kid = `{"keys":[{"kty":"RSA","use":"sig","alg":"RS256","kid":"madeup-kid-1","n":"qcm-CsKJNby8p91ISzeFV7IXqD3ISajnlU7fXZw7jWsI2ZCIYYF_rCQE4WxZnnnZJ126mkqJo2NH2BerqIIa5g4C7ZmXIB4SvwAqWovTOZ88w7DkbaeFoVcrbC-LMu8KPR9Dzj1dqABsc8mPHlPEgNYjVaZgS7MjNFCgLgJ6h9m8GCZkDiqBlwC4SNIISfZtuxGjediJq0gN8J7McNQloCyu1KLq9qHlaievIYT1RfC7TU_quB54yx84w6fiiP9v3se47cmDiLgtoFbbVF7yuwGl1aVKsalm_TvZyJuURrSPqqMXUWNCb_ivt15vvjmyZzUjJizsQ-_Y6Crj4w3jkw","e":"AQAB"}]}`
	pagarme := func(*testing.T, vector) setup {
		return setup{verify: []Config{
			{
				Scheme: SchemeRSA, Header: "X-Webhook-Asymmetric-Signature", Encoding: "base64url", Separator: ";",
				Format: "alg=RS256; kid={kid}; signature={signature}",
				Keys:   &KeysConfig{JWKS: "https://hubapi.pagar.me/.well-known/jwks.json", Published: kid},
			},
			{Scheme: SchemeBasic},
		}}
	}
	fal := func(t *testing.T, v vector) setup {
		return setup{verify: []Config{{
			Scheme: SchemeEd25519, Header: "X-Fal-Webhook-Signature", Timestamp: `headers["X-Fal-Webhook-Timestamp"]`,
			Signed:  []string{"{headers['X-Fal-Webhook-Request-Id']}\n{headers['X-Fal-Webhook-User-Id']}\n{timestamp}\n{sha256(raw)}"},
			Keys:    &KeysConfig{JWKS: "https://rest.fal.ai/.well-known/jwks.json", Published: v.param(t, "jwks")},
			Require: `params.user_id == null || headers["X-Fal-Webhook-User-Id"] == params.user_id`,
		}}}
	}
	paypal := func(t *testing.T, v vector) setup {
		return setup{
			verify: []Config{{
				Scheme: SchemeRSA, Header: "PAYPAL-TRANSMISSION-SIG", Encoding: "base64", Timestamp: `headers["PAYPAL-TRANSMISSION-TIME"]`,
				Signed:       []string{`{headers["PAYPAL-TRANSMISSION-ID"]}|{timestamp}|{params.webhook_id}|{crc32(raw)}`},
				Keys:         &KeysConfig{Certificate: `headers["PAYPAL-CERT-URL"]`, Hosts: []string{".paypal.com"}},
				Require:      `headers["PAYPAL-CERT-URL"].matches("^https://([a-z0-9-]+[.])+paypal[.]com/")`,
				SecretsGiven: true,
			}},
			secrets: []string{v.param(t, "cert_pem")}, // pinned in place of fetching it
		}
	}
	return map[string]row{
		"pagarme pagarme-v5-rs256-jwks": pagarme,
		"pagarme pagarme-v5-basic":      pagarme,
		"fal fal-ed25519-jwks":          fal,
		"paypal paypal-rsa-crc32":       paypal,
		"kiwify-banking kiwify-ed25519-sha256": func(t *testing.T, v vector) setup {
			return setup{
				verify: []Config{{
					Scheme: SchemeEd25519, Header: "x-kiwify-digital-signature", Encoding: "base64url", Hash: "sha256",
					Timestamp: `headers["x-kiwify-timestamp"]`, Signed: []string{"{path}:{method}:{raw}:{timestamp}"},
				}},
				secrets: []string{v.param(t, "public_key_hex")},
			}
		},
		"sendgrid sendgrid-ecdsa": one(Config{
			Scheme: SchemeECDSA, Header: "X-Twilio-Email-Event-Webhook-Signature", Encoding: "base64",
			Timestamp: `headers["X-Twilio-Email-Event-Webhook-Timestamp"]`, Signed: []string{"{timestamp}{raw}"},
		}),
	}
}

func challengeRows() map[string]row {
	return map[string]row{
		"meta meta-get-challenge": func(*testing.T, vector) setup {
			return setup{
				verify: []Config{{Scheme: SchemeHMAC, Header: "X-Hub-Signature-256", Format: "sha256={signature}"}},
				challenge: &ChallengeConfig{
					Method: "GET", When: `same(query["hub.verify_token"], params.verify_token)`, Text: `query["hub.challenge"]`,
				},
			}
		},
		"zoom zoom-url-validation": v0("x-zm-signature", "x-zm-request-timestamp", &ChallengeConfig{
			When: `body.event == "endpoint.url_validation"`,
			JSON: map[string]string{"plainToken": "body.payload.plainToken", "encryptedToken": "sign(body.payload.plainToken)"},
		}),
		"slack slack-url-verification": v0("X-Slack-Signature", "X-Slack-Request-Timestamp", &ChallengeConfig{
			When: `body.type == "url_verification"`, Text: "body.challenge",
		}),
		"braintree braintree-challenge": func(t *testing.T, v vector) setup {
			s := bodyRows()["braintree braintree-sha1"](t, v)
			s.challenge = &ChallengeConfig{
				Method: "GET", When: `query["bt_challenge"].matches("^[0-9a-f]{20,32}$")`,
				Text: `params.public_key + "|" + sign(query["bt_challenge"])`,
			}
			return s
		},
	}
}
