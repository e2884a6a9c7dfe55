//! Tokens of service accounts: signed JSON web tokens, as `serviceaccounts/token` issues them.

use crate::api::{Api, now};
use crate::auth::authentication::User;
use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _, UnparsedPublicKey,
};
use scantling_store::ReadAt;
use scantling_value::{Limits, Map, Value, json};
use sha2::Digest as _;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// The issuer of tokens, which is also the audience of those for this server.
pub(crate) const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";

/// The prefix of the names of service accounts as users.
const USER_PREFIX: &str = "system:serviceaccount:";

/// The attribute of a user that holds the identifier of its token.
const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

/// The name of the file that holds the key.
pub(crate) const KEY_FILE: &str = "service-account.key";

const PEM_BEGIN: &str = "-----BEGIN PRIVATE KEY-----";
const PEM_END: &str = "-----END PRIVATE KEY-----";

/// Signs and verifies tokens with the server's own key.
pub(crate) struct TokenIssuer {
    key: EcdsaKeyPair,
    key_id: String,
    random: SystemRandom,
}

impl fmt::Debug for TokenIssuer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TokenIssuer({})", self.key_id)
    }
}

/// The claims of a token whose signature, issuer and times are valid.
#[derive(Debug)]
pub(crate) struct Claims(Value);

impl Claims {
    /// The audiences.
    pub(crate) fn audiences(&self) -> Vec<&str> {
        self.0.list("aud").iter().filter_map(Value::as_str).collect()
    }

    fn private(&self, path: [&str; 2]) -> &str {
        self.0
            .at(["kubernetes.io", path[0], path[1]])
            .and_then(Value::as_str)
            .unwrap_or("")
    }

    fn namespace(&self) -> &str {
        self.0.str_at(["kubernetes.io", "namespace"])
    }
}

impl TokenIssuer {
    /// Creates an issuer with a new key, and returns the key in PEM.
    pub(crate) fn generate() -> Result<(TokenIssuer, String), String> {
        let random = SystemRandom::new();
        let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random)
            .map_err(|e| format!("cannot generate a key: {e}"))?;
        let pem = format!(
            "{PEM_BEGIN}\n{}\n{PEM_END}\n",
            BASE64_STANDARD.encode(document.as_ref())
        );
        Ok((TokenIssuer::new(document.as_ref())?, pem))
    }

    /// Creates an issuer from a key in PEM.
    pub(crate) fn from_pem(pem: &str) -> Result<TokenIssuer, String> {
        let body = pem
            .split_once(PEM_BEGIN)
            .and_then(|(_, rest)| rest.split_once(PEM_END))
            .map(|(body, _)| body.split_whitespace().collect::<String>());
        let document = body.and_then(|body| BASE64_STANDARD.decode(body).ok());
        TokenIssuer::new(&document.ok_or("it is no private key in PEM")?)
    }

    fn new(pkcs8: &[u8]) -> Result<TokenIssuer, String> {
        let random = SystemRandom::new();
        let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8, &random)
            .map_err(|e| format!("it is no private key for ECDSA on P-256: {e}"))?;
        let digest = sha2::Sha256::digest(key.public_key().as_ref());
        Ok(TokenIssuer {
            key_id: BASE64_URL_SAFE_NO_PAD.encode(digest),
            key,
            random,
        })
    }

    /// Signs claims.
    pub(crate) fn sign(&self, claims: &Value) -> Result<String, String> {
        let header = Map::from_iter([
            ("alg", Value::from("ES256")),
            ("kid", self.key_id.as_str().into()),
        ]);
        let encode = |value: &Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_json());
        let signed = format!("{}.{}", encode(&header.into()), encode(claims));
        let signature = self.key.sign(&self.random, signed.as_bytes());
        let signature = signature.map_err(|e| format!("cannot sign a token: {e}"))?;
        Ok(format!(
            "{signed}.{}",
            BASE64_URL_SAFE_NO_PAD.encode(signature.as_ref())
        ))
    }

    /// The claims of a token that this issuer signed and that has not expired.
    pub(crate) fn verify(&self, token: &str) -> Option<Claims> {
        let (signed, signature) = token.rsplit_once('.')?;
        let (_, claims) = signed.split_once('.')?;
        let signature = BASE64_URL_SAFE_NO_PAD.decode(signature).ok()?;
        let public = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, self.key.public_key().as_ref());
        // The header is not read: whatever algorithm it names, only this key and this algorithm are accepted.
        public.verify(signed.as_bytes(), &signature).ok()?;
        let claims = BASE64_URL_SAFE_NO_PAD.decode(claims).ok()?;
        let claims = json::decode(&claims, Limits::SAFE).ok()?;
        let time = |name: &str| claims.get(name).and_then(Value::as_int);
        // A token without an expiry would be valid forever; this issuer never signs one.
        let is_current = time("nbf").is_none_or(|t| t <= now()) && time("exp").is_some_and(|t| now() < t);
        (claims.get_str("iss") == ISSUER && is_current).then_some(Claims(claims))
    }
}

impl Api {
    /// The user of a token of a service account for this server, if the account still exists.
    pub(crate) async fn service_account_user(&self, token: &str) -> Option<Arc<User>> {
        let claims = self.issuer.verify(token)?;
        if !claims.audiences().contains(&ISSUER) {
            return None;
        }
        self.user_of_claims(&claims).await
    }

    /// The user of verified claims, if the service account and the object that the token is bound to still exist.
    pub(crate) async fn user_of_claims(&self, claims: &Claims) -> Option<Arc<User>> {
        let namespace = claims.namespace();
        let (name, uid) = (
            claims.private(["serviceaccount", "name"]),
            claims.private(["serviceaccount", "uid"]),
        );
        self.check_uid("serviceaccounts", Some(namespace), name, uid)
            .await?;
        let mut extra = BTreeMap::new();
        extra.insert(
            CREDENTIAL_ID.to_owned(),
            vec![format!("JTI={}", claims.0.get_str("jti"))],
        );
        for (kind, plural, scope) in [
            ("pod", "pods", Some(namespace)),
            ("secret", "secrets", Some(namespace)),
            ("node", "nodes", None),
        ] {
            let (name, uid) = (claims.private([kind, "name"]), claims.private([kind, "uid"]));
            if name.is_empty() {
                continue;
            }
            // A node is only recorded beside the pod that the token is bound to.
            if kind != "node" || claims.private(["pod", "name"]).is_empty() {
                self.check_uid(plural, scope, name, uid).await?;
            }
            // kube-apiserver records pods and nodes for admission and audit, but not secrets.
            if kind != "secret" {
                let key = |what: &str| format!("authentication.kubernetes.io/{kind}-{what}");
                extra.insert(key("name"), vec![name.to_owned()]);
                // A node that did not exist has no uid.
                if !uid.is_empty() {
                    extra.insert(key("uid"), vec![uid.to_owned()]);
                }
            }
        }
        let mut user = User::authenticated(
            format!("{USER_PREFIX}{namespace}:{name}"),
            uid.to_owned(),
            vec![
                "system:serviceaccounts".to_owned(),
                format!("system:serviceaccounts:{namespace}"),
            ],
        );
        user.extra = extra;
        Some(Arc::new(user))
    }

    /// Checks that an object of the core group exists with a uid and is not being deleted.
    async fn check_uid(&self, plural: &str, namespace: Option<&str>, name: &str, uid: &str) -> Option<()> {
        let key = self.keys.object("", plural, namespace, name).ok()?;
        // Not from the cache: a token must end with its account, also if another server deleted it.
        let entry = self.store.get(&key, ReadAt::Latest).await;
        let entry = entry
            .inspect_err(|e| tracing::error!(key, error = %e, "a token cannot be checked"))
            .ok()??;
        let object = self
            .decode(&entry)
            .inspect_err(|e| tracing::error!(key, error = e.message(), "a token cannot be checked"))
            .ok()?;
        // An account that was recreated under the same name has another uid.
        let is_same = object.str_at(["metadata", "uid"]) == uid;
        (is_same && !is_gone(&object)).then_some(())
    }
}

/// Returns whether an object was deleted longer ago than clocks may differ. Finalizers may hold it for long, and its tokens
/// must not outlive it.
fn is_gone(object: &Value) -> bool {
    const LEEWAY_SECONDS: i64 = 60;
    let deleted = object.str_at(["metadata", "deletionTimestamp"]);
    let at = deleted.parse::<jiff::Timestamp>().map(jiff::Timestamp::as_second);
    // A time that cannot be read counts as long ago.
    !deleted.is_empty() && at.map_or(true, |at| at < now() - LEEWAY_SECONDS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_end_with_their_object() {
        let deleted = |at: &str| {
            let metadata = Map::from_iter([("deletionTimestamp", Value::from(at))]);
            Value::Object(Map::from_iter([("metadata", metadata.into())]))
        };
        let just_now = jiff::Timestamp::from_second(now()).unwrap().to_string();
        for (object, expected) in [
            (Value::Object(Map::new()), false),
            (deleted(""), false),
            (deleted(&just_now), false),
            (deleted("2020-01-01T00:00:00Z"), true),
            (deleted("yesterday"), true),
        ] {
            assert_eq!(is_gone(&object), expected, "{object:?}");
        }
    }

    #[test]
    fn only_own_current_tokens_are_verified() {
        let (issuer, pem) = TokenIssuer::generate().unwrap();
        let (other, _) = TokenIssuer::generate().unwrap();
        let claims = |issuer: &str, expiry: i64| {
            Value::Object(Map::from_iter([
                ("iss", Value::from(issuer)),
                ("exp", Value::Int(expiry)),
                ("nbf", Value::Int(0)),
            ]))
        };
        let valid = issuer.sign(&claims(ISSUER, now() + 60)).unwrap();
        assert!(issuer.verify(&valid).is_some());
        assert!(TokenIssuer::from_pem(&pem).unwrap().verify(&valid).is_some());
        let refused = [
            other.sign(&claims(ISSUER, now() + 60)).unwrap(),
            issuer.sign(&claims("https://example.com", now() + 60)).unwrap(),
            issuer.sign(&claims(ISSUER, now() - 60)).unwrap(),
            format!("{valid}x"),
            "a.b.c".to_owned(),
            String::new(),
        ];
        for token in refused {
            assert!(issuer.verify(&token).is_none(), "{token}");
        }
        assert!(TokenIssuer::from_pem("nothing").is_err());
    }
}
