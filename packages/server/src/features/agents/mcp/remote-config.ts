import type { Params } from '@gatehouse/contract';
import { AppError } from '../../../kernel/app-error.ts';
import { redactionMarker } from '../../../kernel/config/secrets.ts';
import { McpServerConfig } from './config.ts';

type RemoteParams = Pick<Params<'mcp.connect'>, 'transport' | 'url' | 'headers' | 'agents'>;

/** Returns the server that the parameters of a call describe; undefined when they only name one. */
export function remoteConfig(params: RemoteParams): McpServerConfig | undefined {
  const { transport, url, headers, agents } = params;
  if (transport === undefined && url === undefined && headers === undefined && agents === undefined) return undefined;
  // A program named by a caller would run on this machine.
  if (transport === 'stdio')
    throw new AppError(
      'denied',
      'A stdio server is started only from config.yaml (mcp.servers); here it can only be named, and connected if it is defined there',
      {
        param: 'transport',
      },
    );
  if (transport === undefined)
    throw new AppError('invalid_params', 'transport: expected "http" or "sse" with the address of a server', { param: 'transport' });
  if (url === undefined) throw new AppError('invalid_params', 'url: expected the address of the server', { param: 'url' });
  if (Object.values(headers ?? {}).includes(redactionMarker))
    throw new AppError('invalid_params', `headers: found ${redactionMarker} instead of a secret; pass the value itself`, { param: 'headers' });
  const parsed = McpServerConfig().safeParse({ transport, url, ...(headers !== undefined && { headers }), ...(agents !== undefined && { agents }) });
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const path = issue?.path.join('.') ?? 'url';
  throw new AppError('invalid_params', `${path}: ${issue?.message ?? 'not valid'}`, { param: path });
}
