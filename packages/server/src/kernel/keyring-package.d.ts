/** The part of the package that is used, declared here because it is optional: the types are checked without it, too. */
declare module '@napi-rs/keyring' {
  export class Entry {
    /** Throws when the store is not available. */
    constructor(service: string, account: string, options?: { readonly linux?: { readonly store?: 'secret-service' | 'keyutils' } });
    getPassword(): string | null;
    setPassword(password: string): void;
  }
}
