/** Oldest major version of Node that runs the daemon. */
export const requiredNode = 26;
