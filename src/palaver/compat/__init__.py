"""Names and faces that only the source documents ask for. Nothing but the face of palaver imports them."""
