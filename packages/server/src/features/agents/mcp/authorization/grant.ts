import * as z from 'zod';
import { parseJson } from '../../../../kernel/json.ts';
import type { Seal } from '../../../../kernel/seal.ts';

/** What is used of an authorization server's metadata (RFC 8414). */
export const Metadata = z.object({
  issuer: z.string(),
  authorization_endpoint: z.string(),
  token_endpoint: z.string(),
  registration_endpoint: z.string().optional(),
  revocation_endpoint: z.string().optional(),
  response_types_supported: z.array(z.string()),
  code_challenge_methods_supported: z.array(z.string()).optional(),
  token_endpoint_auth_methods_supported: z.array(z.string()).optional(),
  scopes_supported: z.array(z.string()).optional(),
  authorization_response_iss_parameter_supported: z.boolean().optional(),
});
export type Metadata = z.output<typeof Metadata>;

/** A client that was registered automatically (RFC 7591). */
export const RegisteredClient = z.object({
  client_id: z.string(),
  client_secret: z.string().optional(),
  token_endpoint_auth_method: z.string().optional(),
});
export type RegisteredClient = z.output<typeof RegisteredClient>;

const Common = {
  /** Address of the MCP server: tokens never go to another one. */
  url: z.string(),
  metadata: Metadata,
  /** Absent: the one of the configuration. */
  client: RegisteredClient.optional(),
  redirectUri: z.string(),
  /** Resource indicator (RFC 8707), as the server names itself. */
  resource: z.string().optional(),
  scope: z.string().optional(),
};

/** A valid authorization. */
export const Grant = z.object({ ...Common, accessToken: z.string(), refreshToken: z.string().optional() });
export type Grant = z.output<typeof Grant>;

/** A pending authorization, which a person completes in a browser. */
export const Flow = z.object({ ...Common, codeVerifier: z.string() });
export type Flow = z.output<typeof Flow>;

/** Secrets of both, for the redactor. */
export function secretsOf(content: Grant | Flow | undefined): string[] {
  if (content === undefined) return [];
  const own = 'codeVerifier' in content ? [content.codeVerifier] : [content.accessToken, content.refreshToken];
  return [...own, content.client?.client_secret].filter((secret) => secret !== undefined);
}

export function openSealed<T>(seal: Seal, schema: z.ZodType<T>, name: string, sealed: string): T | undefined {
  const text = seal.open(name, sealed);
  return text === undefined ? undefined : schema.safeParse(parseJson(text)).data;
}

export const grantName = (server: string): string => `authorization ${server}`;
export const flowName = (stateDigest: string): string => `flow ${stateDigest}`;

export function scopesOf(scope: string | undefined): string[] {
  return scope === undefined ? [] : [...new Set(scope.split(/\s+/).filter((each) => each !== ''))].slice(0, 64);
}
