export type ListenErrorCode = 'port_in_use' | 'address_unavailable' | 'permission_denied' | 'listen_failed';

/** Why the listener could not be opened; `message` says what the operator should do. */
export class ListenError extends Error {
  override readonly name = 'ListenError';
  readonly code: ListenErrorCode;

  constructor(code: ListenErrorCode, message: string, cause: unknown) {
    super(message, { cause });
    this.code = code;
  }
}

export function listenErrorOf(error: Error, host: string, port: number): ListenError {
  const where = `${host.includes(':') ? `[${host}]` : host}:${port}`;
  switch ('code' in error ? error.code : undefined) {
    case 'EADDRINUSE':
      return new ListenError(
        'port_in_use',
        `${where} is taken by another process; stop it, or choose another port with --port or gateway.port`,
        error,
      );
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return new ListenError('address_unavailable', `This machine has no address ${host}; see gateway.host`, error);
    case 'EACCES':
      return new ListenError(
        'permission_denied',
        `Listening on ${where} is not permitted; ports below 1024 need privileges, see gateway.port`,
        error,
      );
    default:
      return new ListenError('listen_failed', `Cannot listen on ${where}: ${error.message}`, error);
  }
}
