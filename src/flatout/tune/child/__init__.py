"""What `flatout tune` brings into the user's Python: it keeps a trial away from the user's files (`shield`), makes two
runs of an unseeded program alike (`seeds`, `calm`) and writes down what the program computes (`numbers`)."""
