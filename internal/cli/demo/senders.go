package demo

import (
	"fmt"
	"time"
)

// The bodies of the four senders, with what the handlers of the day read and no
// more. Ids, names and amounts are made up.

func stripeSale(s *sale, n int, at time.Time, back int64) {
	s.key = fmt.Sprintf("pi_3MadeUpDay%04d", n+1)
	charge, order := fmt.Sprintf("ch_3MadeUpDay%04d", n+1), fmt.Sprintf("D-%d", n+1)
	number := 0
	tell := func(kind string, refund bool, after time.Duration, object, former string) {
		number++
		if former != "" {
			former = `,"previous_attributes":` + former
		}
		s.tell(kind, refund, `{"id":"evt_3MadeUpDay%04d%02d","object":"event","api_version":"2025-09-30.clover","created":%d,`+
			`"data":{"object":%s%s},"livemode":false,"pending_webhooks":1,"request":{"id":null,"idempotency_key":null},"type":"%s"}`,
			n+1, number, at.Add(after).Unix(), object, former, kind)
	}
	intent := func(received int64, status string) string {
		return fmt.Sprintf(`{"id":"%s","object":"payment_intent","amount":%d,"amount_capturable":0,"amount_received":%d,"created":%d,`+
			`"currency":"brl","livemode":false,"metadata":{"order":"%s"},"status":"%s"}`, s.key, s.amount, received, at.Unix(), order, status)
	}
	charged := func(refunded int64) string {
		return fmt.Sprintf(`{"id":"%s","object":"charge","amount":%d,"amount_captured":%d,"amount_refunded":%d,"captured":true,"created":%d,`+
			`"currency":"brl","disputed":false,"livemode":false,"paid":true,"payment_intent":"%s","refunded":%t,"status":"succeeded"}`,
			charge, s.amount, s.amount, refunded, at.Unix()+60, s.key, refunded == s.amount)
	}
	dispute := func(status string) string {
		return fmt.Sprintf(`{"id":"du_3MadeUpDay%04d","object":"dispute","amount":%d,"charge":"%s","created":%d,"currency":"brl",`+
			`"payment_intent":"%s","reason":"product_not_received","status":"%s"}`, n+1, s.amount, charge, at.Unix()+7200, s.key, status)
	}
	tell("payment_intent.created", false, 0, intent(0, "requires_payment_method"), "")
	if s.plot == waiting {
		tell("payment_intent.processing", false, time.Minute, intent(0, "processing"), "")
		return
	}
	tell("charge.succeeded", false, time.Minute, charged(0), "")
	tell("payment_intent.succeeded", false, time.Minute, intent(s.amount, "succeeded"), "")
	switch s.plot {
	case refunded:
		tell("charge.refunded", true, time.Hour, charged(s.amount), `{"amount_refunded":0,"refunded":false}`)
	case partlyRefunded:
		tell("charge.refunded", true, time.Hour, charged(back), `{"amount_refunded":0}`)
	case chargedBack, disputeWon:
		last := "won"
		if s.plot == chargedBack {
			last = "lost"
		}
		tell("charge.dispute.created", false, 2*time.Hour, dispute("needs_response"), "")
		tell("charge.dispute.closed", s.plot == chargedBack, 5*time.Hour, dispute(last), `{"status":"under_review"}`)
	}
}

func kiwifySale(s *sale, n int, at time.Time) {
	s.key = fmt.Sprintf("0b1c2d3e-0000-4000-8000-0000000d%04d", n+1)
	zone := time.FixedZone("-03", -3*60*60) // the sender writes local times to the minute
	tell := func(kind, status string, refund bool, after time.Duration) {
		s.tell(kind, refund, `{"order_id":"%s","order_ref":"Day%04d","order_status":"%s","payment_method":"pix","created_at":"%s",`+
			`"updated_at":"%s","webhook_event_type":"%s","Product":{"product_name":"Produto exemplo"},"Customer":{"email":"cliente@example.com"},`+
			`"Commissions":{"charge_amount":%d,"kiwify_fee":%d,"commissioned_stores":[{"value":"%d"}],"currency":"BRL"}}`,
			s.key, n+1, status, at.In(zone).Format("2006-01-02 15:04"), at.Add(after).In(zone).Format("2006-01-02 15:04"), kind,
			s.amount, s.amount/10, s.amount-s.amount/10)
	}
	tell("pix_created", "waiting_payment", false, 0)
	switch s.plot {
	case waiting:
		return
	case refused:
		tell("order_rejected", "refused", false, time.Minute)
		return
	}
	tell("order_approved", "paid", false, time.Minute)
	switch s.plot {
	case refunded:
		tell("order_refunded", "refunded", true, 2*time.Hour)
	case chargedBack:
		tell("chargeback", "chargedback", true, 5*time.Hour)
	}
}

func hotmartSale(s *sale, n int, at time.Time) {
	s.key = fmt.Sprintf("HPDAY%08d", n+1)
	number := 0
	tell := func(kind, status string, refund bool, after time.Duration) {
		number++
		s.tell(kind, refund, `{"id":"3f0c9a10-0000-4000-8000-00000d%04d%02d","creation_date":%d,"event":"%s","version":"2.0.0","data":{`+
			`"product":{"id":1000001,"name":"Produto exemplo"},"buyer":{"email":"cliente@example.com"},`+
			`"purchase":{"order_date":%d,"price":{"currency_value":"BRL","value":%s},"full_price":{"currency_value":"BRL","value":%s},`+
			`"payment":{"type":"PIX"},"transaction":"%s","status":"%s"}}}`,
			n+1, number, at.Add(after).UnixMilli(), kind, at.UnixMilli(), decimal(s.amount), decimal(s.amount), s.key, status)
	}
	tell("PURCHASE_BILLET_PRINTED", "BILLET_PRINTED", false, 0)
	switch s.plot {
	case waiting:
		return
	case refused:
		tell("PURCHASE_EXPIRED", "EXPIRED", false, 3*time.Hour)
		return
	}
	tell("PURCHASE_APPROVED", "APPROVED", false, time.Minute)
	switch s.plot {
	case paid:
		tell("PURCHASE_COMPLETE", "COMPLETED", false, 6*time.Hour)
	case refunded:
		tell("PURCHASE_REFUNDED", "REFUNDED", true, 2*time.Hour)
	case chargedBack:
		tell("PURCHASE_CHARGEBACK", "CHARGEBACK", true, 5*time.Hour)
	}
}

// decimal writes centavos as this sender does: 49.9, not 49.90.
func decimal(centavos int64) string {
	text := fmt.Sprintf("%d.%02d", centavos/100, centavos%100)
	for text[len(text)-1] == '0' {
		text = text[:len(text)-1]
	}
	if text[len(text)-1] == '.' {
		text += "0"
	}
	return text
}

func pagarmeSale(s *sale, n int, at time.Time, back int64) {
	s.key = fmt.Sprintf("ch_MadeUpDay%07d", n+1)
	number := 0
	stamp := func(after time.Duration) string { return at.Add(after).Format(time.RFC3339) }
	tell := func(kind, status string, refund bool, after time.Duration, more string) {
		number++
		order := status // the copy of the order that a charge brings
		if status == "chargedback" {
			order = "paid" // a dispute changes the charge alone
		}
		s.tell(kind, refund, `{"id":"hook_MadeUpDay%04d%02d","account":{"id":"acc_MadeUp00000001","name":"Loja exemplo"},"type":"%s","created_at":"%s",`+
			`"data":{"id":"%s","code":"D-%d","amount":%d,"status":"%s","currency":"BRL","payment_method":"pix","created_at":"%s","updated_at":"%s",`+
			`"order":{"id":"or_MadeUpDay%07d","code":"D-%d","amount":%d,"currency":"BRL","status":"%s","created_at":"%s","updated_at":"%s"}%s}}`,
			n+1, number, kind, stamp(after), s.key, n+1, s.amount, status, stamp(0), stamp(after), n+1, n+1, s.amount, order, stamp(0), stamp(after), more)
	}
	tell("charge.pending", "pending", false, 0, "")
	switch s.plot {
	case waiting:
		return
	case refused:
		tell("charge.payment_failed", "failed", false, time.Minute, "")
		return
	}
	got := fmt.Sprintf(`,"paid_amount":%d,"paid_at":"%s"`, s.amount, stamp(time.Minute))
	tell("charge.paid", "paid", false, time.Minute, got)
	switch s.plot {
	case refunded:
		tell("charge.refunded", "canceled", true, 2*time.Hour, got+fmt.Sprintf(`,"canceled_amount":%d,"canceled_at":"%s"`, s.amount, stamp(2*time.Hour)))
	case partlyRefunded:
		tell("charge.partial_canceled", "paid", true, 2*time.Hour, got+fmt.Sprintf(`,"canceled_amount":%d`, back))
	case chargedBack:
		tell("charge.chargedback", "chargedback", true, 5*time.Hour, got)
	}
}
