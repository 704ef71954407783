/** Below this share of the limit, reloads after events slow down, so that requests of the person remain. */
const spared = 0.5;

/** How much of the limit of requests is left, as the answers of the gateway report it. */
export class RequestQuota {
  #share = 1;
  #resetAt = 0;

  /** The global `fetch`, whose answers are observed. */
  readonly fetch = async (url: string, init: RequestInit): Promise<Response> => {
    const response = await fetch(url, init);
    this.note(response.headers);
    return response;
  };

  note(headers: Pick<Headers, 'get'>): void {
    const [limit, remaining, reset] = ['limit', 'remaining', 'reset'].map((name) => Number(headers.get(`ratelimit-${name}`) ?? Number.NaN));
    if (limit === undefined || remaining === undefined || reset === undefined || !(limit > 0) || !(remaining >= 0) || !(reset >= 0)) return;
    this.#share = remaining / limit;
    this.#resetAt = performance.now() + reset * 1000;
  }

  /** Milliseconds that a reload nobody asked for should wait: none with half of the limit left, and until the window ends when it is used up. */
  pauseMs(): number {
    const leftMs = this.#resetAt - performance.now();
    return leftMs > 0 && this.#share < spared ? Math.round(leftMs * (1 - this.#share / spared)) : 0;
  }
}
