import type * as McpClient from '@modelcontextprotocol/client';
import { AppError } from '../../../../kernel/app-error.ts';
import type { McpServerConfig } from '../config.ts';
import { type Flow, type Grant, Metadata, RegisteredClient } from './grant.ts';
import type { Challenge } from './needed.ts';

type Sdk = typeof McpClient;

export interface FlowRequest {
  readonly url: string;
  readonly oauth: McpServerConfig['oauth'];
  readonly challenge: Challenge;
  /** The present authorization, which the new one extends. */
  readonly grant: Grant | undefined;
  readonly redirectUri: string;
  readonly state: string;
  readonly fetchFn: McpClient.FetchLike;
}

/** Finds the authorization server, registers a client where needed, and returns the address for the browser with what completes it. */
export async function beginFlow(sdk: Sdk, request: FlowRequest): Promise<{ readonly flow: Flow; readonly authorizationUrl: URL }> {
  const { url, fetchFn, redirectUri, state } = request;
  const { authorizationServerUrl, authorizationServerMetadata, resourceMetadata } = await sdk.discoverOAuthServerInfo(url, {
    fetchFn,
    // Checked below.
    skipIssuerMetadataValidation: true,
    ...(request.challenge.resourceMetadataUrl !== undefined && { resourceMetadataUrl: request.challenge.resourceMetadataUrl }),
  });
  const resource = resourceMetadata?.resource;
  const requestedResource = sdk.resourceUrlFromServerUrl(url);
  if (resource !== undefined && !sdk.checkResourceAllowed({ requestedResource, configuredResource: resource }))
    throw new AppError(
      'denied',
      `The server says that it is "${resource}", not ${requestedResource.href}: authorization for another resource is refused`,
    );
  const metadata = readMetadata(authorizationServerMetadata ?? guessMetadata(authorizationServerUrl));
  const isNamed = (resourceMetadata?.authorization_servers?.length ?? 0) > 0;
  if (!isIssuer(metadata.issuer, authorizationServerUrl, isNamed))
    throw new AppError(
      'denied',
      `The metadata of the authorization server ${authorizationServerUrl} names another one, ${metadata.issuer}: it is refused`,
    );
  const scope = scopeFor(sdk, request, resourceMetadata?.scopes_supported, metadata);
  const client = await clientFor(sdk, request, authorizationServerUrl, metadata, scope);
  const { authorizationUrl, codeVerifier } = await sdk.startAuthorization(authorizationServerUrl, {
    metadata,
    clientInformation: client ?? configuredClient(request.oauth),
    redirectUrl: redirectUri,
    state,
    ...(scope !== undefined && { scope }),
    ...(resource !== undefined && { resource }),
  });
  return {
    authorizationUrl,
    flow: {
      url,
      metadata,
      redirectUri,
      codeVerifier,
      ...(client !== undefined && { client }),
      ...(resource !== undefined && { resource }),
      ...(scope !== undefined && { scope }),
    },
  };
}

export function configuredClient({ clientId, clientSecret }: McpServerConfig['oauth']): RegisteredClient {
  if (clientId === undefined) throw new AppError('precondition_failed', 'oauth.clientId is no longer configured: authorize the server again');
  return { client_id: clientId, ...(clientSecret !== undefined && { client_secret: clientSecret }) };
}

/** The endpoints of servers without metadata (MCP 2025-03-26). */
function guessMetadata(authorizationServerUrl: string): Metadata {
  const at = (path: string) => new URL(path, authorizationServerUrl).href;
  return {
    issuer: authorizationServerUrl,
    authorization_endpoint: at('/authorize'),
    token_endpoint: at('/token'),
    registration_endpoint: at('/register'),
    response_types_supported: ['code'],
  };
}

function readMetadata(given: object): Metadata {
  const metadata = Metadata.parse(given);
  const { authorization_endpoint, token_endpoint, registration_endpoint, revocation_endpoint } = metadata;
  for (const endpoint of [authorization_endpoint, token_endpoint, registration_endpoint, revocation_endpoint])
    if (endpoint !== undefined && !isSafeEndpoint(endpoint))
      throw new AppError('denied', 'The authorization server names an endpoint that is not https: its addresses are not used');
  return metadata;
}

/**
 * Whether metadata is that of the authorization server (RFC 8414 §3.3). An MCP server that names none is its own (MCP 2025-03-26): any
 * part of its origin may be the issuer.
 */
function isIssuer(issuer: string, url: string, isNamed: boolean): boolean {
  return issuer === url || `${issuer}/` === url || (!isNamed && URL.parse(issuer)?.origin === new URL(url).origin);
}

/** A person opens one of these, and codes and tokens go to the others: https, or this machine. */
function isSafeEndpoint(text: string): boolean {
  const url = URL.parse(text);
  return url?.protocol === 'https:' || (url?.protocol === 'http:' && isLoopback(url.hostname));
}

function isLoopback(hostname: string): boolean {
  return hostname === 'localhost' || hostname.endsWith('.localhost') || hostname === '[::1]' || /^127\.\d+\.\d+\.\d+$/.test(hostname);
}

/** The scopes of the configuration, of the server's challenge, or those that it lists; a wider authorization keeps what it has. */
function scopeFor(sdk: Sdk, { oauth, challenge, grant }: FlowRequest, listed: readonly string[] | undefined, metadata: Metadata): string | undefined {
  const asked = oauth.scopes?.join(' ') ?? challenge.scope ?? listed?.join(' ');
  const scope = sdk.computeScopeUnion(grant?.scope, asked, challenge.scope);
  // Some authorization servers issue refresh tokens only for this scope.
  const offline = scope !== undefined && metadata.scopes_supported?.includes('offline_access') === true;
  return offline ? sdk.computeScopeUnion(scope, 'offline_access') : scope;
}

/** Returns the registered client of the present authorization, or registers one; undefined when the configuration has one. */
async function clientFor(
  sdk: Sdk,
  { oauth, grant, redirectUri, fetchFn }: FlowRequest,
  authorizationServerUrl: string,
  metadata: Metadata,
  scope: string | undefined,
): Promise<RegisteredClient | undefined> {
  if (oauth.clientId !== undefined) return undefined;
  // A client without a valid authorization may be unknown there by now.
  if (grant?.client !== undefined && grant.metadata.issuer === metadata.issuer && grant.redirectUri === redirectUri) return grant.client;
  if (metadata.registration_endpoint === undefined)
    throw new AppError(
      'precondition_failed',
      `The authorization server ${metadata.issuer} registers no clients automatically: register one there with the redirect address ${redirectUri}, and set oauth.clientId (and oauth.clientSecret) of the server in config.yaml`,
    );
  const supported = metadata.token_endpoint_auth_methods_supported ?? ['client_secret_basic'];
  const method = ['client_secret_basic', 'client_secret_post', 'none'].find((each) => supported.includes(each)) ?? 'none';
  const client = await sdk.registerClient(authorizationServerUrl, {
    metadata,
    clientMetadata: {
      client_name: 'Gatehouse',
      redirect_uris: [redirectUri],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: method,
      application_type: isLoopback(new URL(redirectUri).hostname) ? 'native' : 'web',
    },
    fetchFn,
    ...(scope !== undefined && { scope }),
  });
  return RegisteredClient.parse(client);
}
