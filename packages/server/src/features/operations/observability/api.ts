import type { ErrorCode } from '@gatehouse/contract';

/** Work that the transports report, for the numbers of `/metrics`. Each call is a few additions. */
export interface TransportMeter {
  /** Counts an answered request, or one whose client left (`status` 0). `route` is a declared path, or `none`. */
  request(route: string, family: string, method: string, status: number, ms: number): void;
  /** Counts a finished JSON-RPC call over either transport. */
  call(method: string, outcome: 'ok' | ErrorCode, ms: number): void;
  /** Counts a refused or failed request or handshake. */
  failed(transport: 'http' | 'websocket', code: ErrorCode): void;
  /** Counts a secret that belongs to nobody. */
  wrongSecret(): void;
  rateLimited(): void;
}

/** Traces requests of the transports; spans never hold content. */
export interface TransportTracer {
  /** Runs the handler of an admitted request within a server span. `status` is read at its end. */
  request<T>(
    about: {
      readonly route: string;
      readonly method: string;
      readonly traceId: string;
      readonly traceparent: string | undefined;
      readonly status: () => number;
    },
    run: () => T | Promise<T>,
  ): Promise<T>;
}
