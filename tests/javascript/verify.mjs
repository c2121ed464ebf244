// Verifies deliveries as a receiver written in JavaScript does: raw bytes, the public library.
//
// Standard input is a JSON list of {secret, headers, body}, the body in base64; standard output a list
// of true and false. Whatever else than a signature is wrong ends it with an error.

import { WebhookVerificationError, Webhook } from "standardwebhooks";

const chunks = [];
for await (const chunk of process.stdin) chunks.push(chunk);
const cases = JSON.parse(Buffer.concat(chunks).toString("utf8"));

function isVerified({ secret, headers, body }) {
  try {
    new Webhook(secret).verify(Buffer.from(body, "base64"), headers);
    return true;
  } catch (error) {
    if (error instanceof WebhookVerificationError) return false;
    throw error;
  }
}

process.stdout.write(JSON.stringify(cases.map(isVerified)));
