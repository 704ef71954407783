import type { SecretLookup } from '../../../../kernel/config/configuration.ts';
import type { Environment } from '../../../../kernel/config/references.ts';
import { isSecretName } from '../../../../kernel/config/secrets.ts';

/**
 * Looks names of secrets that the environment does not have up in the store, too. Other names are for the owner of the process alone: an
 * administrator who could set the address of a provider would get the keys that are sent there.
 */
export function layeredEnvironment(env: Environment, secrets: SecretLookup): Environment {
  return new Proxy(env, {
    get(own, name) {
      const given: string | undefined = Reflect.get(own, name);
      return typeof name !== 'string' || (given ?? '') !== '' || !isSecretName(name) ? given : secrets(name);
    },
  });
}
