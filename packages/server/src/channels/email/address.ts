/** One address without a name, comment or quotes: what is in it can't end a header, and no two programs read it differently. */
export const addressPattern = /^[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9](?:[A-Za-z0-9-]{0,62}\.)*[A-Za-z0-9-]{1,63}$/;

export const isAddress = (text: string): boolean => text.length <= 254 && addressPattern.test(text);

/** Returns the domain of an address, in lower case. */
export const domainOf = (address: string): string => address.slice(address.lastIndexOf('@') + 1).toLowerCase();

const messageIdPattern = /^<[!-;=?-~]{1,250}>$/;

/** Whether a text is one Message-ID in angle brackets. */
export const isMessageId = (text: string): boolean => messageIdPattern.test(text);

/** Returns the Message-IDs in a header, in their order. */
export const messageIdsIn = (header: string): string[] => (header.match(/<[^<>]*>/g) ?? []).filter(isMessageId);

/** Returns a text as one line, without anything that ends a header. */
export const oneLine = (text: string, most: number): string =>
  text
    .toWellFormed()
    .replaceAll(/[\p{Cc}\u2028\u2029\s]+/gu, ' ')
    .trim()
    .slice(0, most)
    .toWellFormed();
