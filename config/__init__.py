"""What an operator can set: typed tables of Kafka's properties, and the loader that fills them."""
