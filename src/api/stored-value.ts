/** A stored value; as it is stored where it cannot be read, which concerns this value only. */
export type StoredValue =
  | { readonly readable: true; readonly value: unknown }
  | { readonly readable: false; readonly text: string; readonly error: Error };
