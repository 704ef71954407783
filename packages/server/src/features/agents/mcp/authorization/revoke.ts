import type { FetchLike } from '@modelcontextprotocol/client';
import type { Grant, RegisteredClient } from './grant.ts';

/** Revokes the tokens of an authorization (RFC 7009). Returns whether the authorization server confirmed it. */
export async function revokeGrant(grant: Grant, client: RegisteredClient, fetchFn: FetchLike): Promise<boolean> {
  const endpoint = grant.metadata.revocation_endpoint;
  if (endpoint === undefined) return false;
  // Revoking a refresh token also ends its access tokens.
  const body = new URLSearchParams(
    grant.refreshToken === undefined
      ? { token: grant.accessToken, token_type_hint: 'access_token' }
      : { token: grant.refreshToken, token_type_hint: 'refresh_token' },
  );
  const headers = new Headers({ 'content-type': 'application/x-www-form-urlencoded' });
  const { client_id: id, client_secret: secret } = client;
  const supported = grant.metadata.token_endpoint_auth_methods_supported ?? ['client_secret_basic'];
  const usesBasic = secret !== undefined && (client.token_endpoint_auth_method ?? supported[0]) === 'client_secret_basic';
  if (usesBasic) headers.set('authorization', `Basic ${Buffer.from(`${encodeURIComponent(id)}:${encodeURIComponent(secret)}`).toString('base64')}`);
  else {
    body.set('client_id', id);
    if (secret !== undefined) body.set('client_secret', secret);
  }
  const answer = await fetchFn(endpoint, { method: 'POST', headers, body });
  return answer.ok;
}
